"""Alembic's entry point: runs the migrations on the connection, and inside the transaction, it is given."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
