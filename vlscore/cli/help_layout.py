"""Layout of `--help`: options in groups on 80 columns, commands by purpose; no name is cut."""

from collections.abc import Sequence
from typing import Any

import typer
import typer.core

from vlscore.cli.output import echo, print_notes

_FIRST = "Options"
# --help explains what most runs need, and names the rest, so that it fits on a screen and a half.
# Of groups that many commands share, it explains these:
_SHARED = ("Table", "Encoder", "Images and reports")
_EXPLAINED = {
    "--image-root", "--patient-column", "--encoder", "--weights", "--text-only", "--train",
    "--references",
}  # fmt: skip
# Of the other groups, it names these alone:
_NAMED = {
    "--overwrite", "--keep-going", "--report", "--quiet", "--json", "--resamples", "--permutations",
    "--seed", "--format", "--pairs", "--image-weights", "--micro-batch",
    "--weight-decay", "--warm-up", "--clip", "--frozen-norms", "--sentences",
    "--group-column", "--validate-every", "--patience", "--effort", "--mode", "--ranks",
    "--describe", "--check", "--lower-is-better", "--layout", "--in-flight", "--prices",
    "--by",
}  # fmt: skip
_HELP_ALL = "--help-all"
# Lines of options that --help explains in full.
_FITS = 48
# Widest first column of a list of options; a longer name has a line of its own.
_NAMES_WIDTH = 25


class GroupedCommand(typer.core.TyperCommand):
    """A command whose options are in the groups that `rich_help_panel` names."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take --help-all for --help with every option explained."""
        if _HELP_ALL in args:
            ctx.meta[_HELP_ALL] = True
            args = ["--help"]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the line of usage, without braces around arguments."""
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]

    def invoke(self, ctx: Any) -> Any:
        """Run the command; with --report, also where some rows failed, write its page."""
        try:
            returned = super().invoke(ctx)
        except typer.Exit as ended:
            if ended.exit_code == 1:
                _write_page(ctx)
            raise
        _write_page(ctx)
        return returned

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments first, then every group of options in order of appearance.

        Every option is explained where that fits, or with --help-all.
        """
        everything = ctx.make_formatter()
        self._write_groups(ctx, everything, every=True)
        is_short = everything.getvalue().count("\n") <= _FITS
        self._write_groups(ctx, formatter, every=is_short or _HELP_ALL in ctx.meta)

    def _write_groups(self, ctx: Any, formatter: Any, *, every: bool) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        others: dict[str, list[str]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            is_option = parameter.param_type_name == "option"
            heading = getattr(parameter, "rich_help_panel", None) or _FIRST
            rows = groups.setdefault(heading if is_option else "Arguments", [])
            if not is_option:
                # Without the type in angle brackets: "SYSTEMS <list[str]>".
                record = (record[0].partition(" <")[0], record[1])
            if is_option and not every and _is_named_alone(heading, parameter.opts):
                names = (*parameter.opts, *parameter.secondary_opts)
                others.setdefault(heading, []).extend(names)
            else:
                rows.append(record)
        # What belongs to this command alone comes before what it shares with others.
        for heading in sorted(groups, key=lambda name: {"Arguments": 0, _FIRST: 1}.get(name, 2)):
            with formatter.section(heading):
                if groups[heading]:
                    formatter.write_dl(groups[heading], col_max=_NAMES_WIDTH)
                if heading in others:
                    _write_names(formatter, others[heading])
        if others:
            formatter.write_paragraph()
            formatter.write_text(f"{ctx.command_path} {_HELP_ALL} explains every option.")


def _write_names(formatter: Any, names: Sequence[str]) -> None:
    """Write names of options, none of them broken at a hyphen."""
    import textwrap

    before = " " * formatter.current_indent
    text = textwrap.fill(
        ", ".join(names),
        formatter.width,
        initial_indent=f"{before}also: ",
        subsequent_indent=f"{before}      ",
        break_on_hyphens=False,
    )
    formatter.write(f"{text}\n")


def _is_named_alone(heading: str, names: Sequence[str]) -> bool:
    """Return whether --help names an option without an explanation."""
    if heading in _SHARED:
        return not _EXPLAINED.intersection(names)
    return bool(_NAMED.intersection(names))


class GroupedCommands(typer.core.TyperGroup):
    """Commands under headings of their purpose, each with the first sentence of its help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Print the groups in order of appearance; no sentence is cut."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.commands[name]
            if command.hidden:
                continue
            heading = getattr(command, "rich_help_panel", None)
            sentence = (command.help or "").split("\n\n")[0].replace("\n", " ")
            groups.setdefault(heading if isinstance(heading, str) else "Commands", []).append(
                (name, sentence)
            )
        for heading, commands in groups.items():
            with formatter.section(heading):
                formatter.write_dl(commands)


def _write_page(ctx: Any) -> None:
    """Write the page of a command's result folder, if --report was given."""
    out = ctx.params.get("out")
    if not ctx.params.get("report") or out is None:
        return
    from vlscore.pages import report

    # The folders of these commands do not name their table.
    own = ctx.params.get("studies") or ctx.params.get("reports")
    page = report(out, table=own if ctx.info_name in ("judge", "findings") else None)
    print_notes(page.notes)
    if not (ctx.params.get("quiet") or ctx.params.get("as_json")):
        echo(f"wrote {page.path}")
