"""Help that reads well on 80 columns: options in groups, no name or value ever cut."""

from typing import Any

import typer.core

_FIRST = "Options"


class GroupedCommand(typer.core.TyperCommand):
    """A command whose options stand under the headings that `rich_help_panel` names."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments first, then every group of options in order of appearance."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            is_option = parameter.param_type_name == "option"
            heading = getattr(parameter, "rich_help_panel", None) or _FIRST
            groups.setdefault(heading if is_option else "Arguments", []).append(record)
        # What belongs to this command alone stands before what it shares with others.
        for heading in sorted(groups, key=lambda name: {"Arguments": 0, _FIRST: 1}.get(name, 2)):
            with formatter.section(heading):
                formatter.write_dl(groups[heading])
