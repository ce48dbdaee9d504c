"""Policies by name, with their settings, and what is said when a name or value is wrong."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from clew.errors import BadBudget, UnknownName
from clew.policies import Guarded, available, linear, pi, policy, qitos
from clew.policies.harness.linear import Linear
from clew.policies.harness.pi import Pi
from clew.policies.harness.qitos import QitOS


def test_names_give_guarded_policies() -> None:
    assert policy("linear") == linear() == Guarded(Linear())
    assert policy("pi") == pi()
    assert policy("qitos") == qitos()
    assert policy("pi").name == "pi"


def test_under_guard_a_summary_is_data_and_stands_for_what_it_saw() -> None:
    assert qitos() == Guarded(QitOS(summary_role="user", lossless=True))
    assert (QitOS().summary_role, QitOS().lossless) == ("system", False), "QitOS's own way"
    assert policy("qitos:summary_role=system,lossless=false") == Guarded(QitOS())


def test_settings() -> None:
    made = policy("pi:keep=20_000, reserve=10000,version=0.73.1,window=200000")
    assert made == pi(keep=20_000, reserve=10_000, version="0.73.1", window=200_000)
    assert made == Guarded(Pi(keep=20_000, reserve=10_000, version="0.73.1"), 200_000)
    assert made.budget(8_000).window == 200_000
    assert policy("pi:version=1.6").policy.version == "1.6", "a number where a text is asked for"
    assert policy("qitos:lossless=no").policy.lossless is False
    assert policy("linear:").budget(9_000).window == 9_000


@pytest.mark.parametrize(
    ("spec", "error", "says"),
    [
        ("nope", UnknownName, "linear, pi, qitos"),
        ("", UnknownName, "linear, pi, qitos"),
        ("pi:kept=3", UnknownName, "keep"),
        ("pi:keep", BadBudget, "setting=value"),
        ("pi:window=500k", BadBudget, "500_000"),
        ("pi:keep=0.5M", BadBudget, "500_000"),
        ("pi:keep=much", BadBudget, "keep"),
        ("linear:output=9000,window=8000", BadBudget, "9,000"),
        ("linear:window=100", BadBudget, "100"),
        ("pi:keep=300000,window=200000", BadBudget, "300,000"),
        ("qitos:summary_role=tool", BadBudget, "summary_role"),
    ],
)
def test_what_is_wrong_is_said(spec: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        policy(spec)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_settings_in_code() -> None:
    with pytest.raises(UnknownName):
        pi(keeps=3)
    with pytest.raises(BadBudget):
        pi(keep="much")
    with pytest.raises(BadBudget):
        linear(window=True)


def test_the_listing_shows_every_setting_with_its_default() -> None:
    listed = {listing.name: listing for listing in available()}
    assert list(listed) == sorted(listed) == ["linear", "pi", "qitos"]
    assert listed["linear"].settings == {"output": None, "window": 0}
    assert listed["pi"].settings["version"] == "1.6"
    for listing in listed.values():
        assert listing.summary
        made = policy(listing.name)
        assert listing.settings == {**msgspec.structs.asdict(made.policy), "window": made.window}


@pytest.mark.parametrize(("make", "kind"), [(linear, Linear), (pi, Pi), (qitos, QitOS)])
def test_editors_and_type_checkers_know_every_setting(make: Any, kind: type[msgspec.Struct]) -> None:
    (told,) = get_args(get_type_hints(make)["settings"])
    assert get_type_hints(told) == get_type_hints(kind)


@pytest.mark.parametrize("name", ["linear", "pi", "qitos"])
@pytest.mark.parametrize("window", ["200k", 0, -5, 0.5, float("nan"), None])
def test_a_window_that_is_none_is_refused_before_a_policy_computes_with_it(name: str, window: Any) -> None:
    with pytest.raises(BadBudget, match="window"):
        policy(name).budget(window)
