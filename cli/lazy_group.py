"""A group of commands that are imported only when they are used."""

import importlib
from collections.abc import Sequence

import click

from cli.extras import Uninstalled, missing_extra


class LazyGroup(click.Group):
    """A group whose commands are ``command`` of modules in one package.

    A command's name is its module's, with dashes for underscores. A mistyped name is answered with the nearest ones.
    """

    def __init__(self, *args: object, package: str = "", names: Sequence[str] = (), **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._package = package
        self._names = tuple(names)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._names:
            return None
        try:
            module = importlib.import_module(f"{self._package}.{cmd_name.replace('-', '_')}")
        except ModuleNotFoundError as error:
            extra = missing_extra(error)
            if extra is None:
                raise
            return Uninstalled(cmd_name, error, extra)
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            # Click looks for near names among the commands that are already loaded.
            raise click.NoSuchCommand(error.command_name, possibilities=self._names, ctx=ctx) from error
