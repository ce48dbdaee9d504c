"""Settings of the whole test run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # tests share modules: `import conversations`, `import provider_rules`

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
settings.register_profile("quick", max_examples=50, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("ci", max_examples=500, deadline=None, suppress_health_check=_SLOW, derandomize=True)
settings.load_profile(os.environ.get("CLEW_HYPOTHESIS") or ("ci" if os.environ.get("CI") == "true" else "quick"))
