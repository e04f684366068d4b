"""``geomix completion``: completion scripts for bash, zsh and fish, generated from the parser."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

from geomix.command import options

EXAMPLES = """\
  eval "$(geomix completion bash)"                        # in ~/.bashrc
  geomix completion zsh > ~/.zfunc/_geomix                # in a folder of fpath
  geomix completion fish > ~/.config/fish/completions/geomix.fish
"""


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "completion", "print completions for a shell", EXAMPLES)
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    from geomix.command.parser import parser

    facts = command_facts(parser())
    print({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](facts), end="")
    return 0


class OptionFacts(NamedTuple):
    """An option: its names, help text and choices."""

    names: tuple[str, ...]
    about: str
    choices: tuple[str, ...]
    takes_value: bool


class CommandFacts(NamedTuple):
    """A command: its options, and the choices of its first positional argument, if any."""

    name: str
    about: str
    options: tuple[OptionFacts, ...]
    choices: tuple[str, ...]


def command_facts(whole: argparse.ArgumentParser) -> list[CommandFacts]:
    """The commands of a parser."""
    commands = next(one for one in whole._actions if isinstance(one, argparse._SubParsersAction))
    abouts = {one.dest: one.help or "" for one in commands._choices_actions}
    return [_command(name, abouts[name], one) for name, one in commands.choices.items()]


def _command(name: str, about: str, parser: argparse.ArgumentParser) -> CommandFacts:
    named = tuple(
        OptionFacts(
            tuple(one.option_strings),
            one.help or "",
            tuple(map(str, one.choices or ())),
            one.nargs != 0,
        )
        for one in parser._actions
        if one.option_strings
    )
    positional = [one for one in parser._actions if not one.option_strings and one.choices]
    choices = tuple(map(str, positional[0].choices or ())) if positional else ()
    return CommandFacts(name, about, named, choices)


def bash(commands: list[CommandFacts]) -> str:
    cases = []
    for one in commands:
        words = " ".join(name for option in one.options for name in option.names)
        values = "".join(
            f"        {'|'.join(option.names)}) words='{' '.join(option.choices)}' ;;\n"
            for option in one.options
            if option.choices
        )
        inner = f'      case "$before" in\n{values}      esac\n' if values else ""
        cases.append(
            f"    {one.name})\n"
            f"      [[ $word == -* ]] && words='{words}' || words='{' '.join(one.choices)}'\n"
            f"{inner}      ;;\n"
        )
    names = " ".join(one.name for one in commands)
    return (
        "_geomix() {\n"
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""\n'
        "  COMPREPLY=()\n"
        "  if (( COMP_CWORD == 1 )); then\n"
        f"    words='{names} --help --version'\n"
        "  else\n"
        '    case "${COMP_WORDS[1]}" in\n' + "".join(cases) + "    esac\n"
        "  fi\n"
        '  COMPREPLY=($(compgen -W "$words" -- "$word"))\n'
        "}\n"
        "complete -o default -F _geomix geomix\n"
    )


def zsh(commands: list[CommandFacts]) -> str:
    listed = "".join(f"    '{one.name}:{_quoted(one.about)}'\n" for one in commands)
    cases = []
    for one in commands:
        specs = [_zsh_option(option) for option in one.options]
        first = f"'1: :({' '.join(one.choices)})'" if one.choices else "'*: :_files'"
        cases.append(f"    {one.name}) _arguments {' '.join([*specs, first])} ;;\n")
    return (
        "#compdef geomix\n"
        "_geomix() {\n"
        "  local -a commands\n"
        f"  commands=(\n{listed}  )\n"
        "  if (( CURRENT == 2 )); then\n"
        "    _describe command commands\n"
        "    return\n"
        "  fi\n"
        "  shift words\n"
        "  (( CURRENT-- ))\n"
        "  case $words[1] in\n" + "".join(cases) + "  esac\n"
        "}\n"
        'if [[ "$funcstack[1]" == _geomix ]]; then _geomix "$@"; else compdef _geomix geomix; fi\n'
    )


def _zsh_option(option: OptionFacts) -> str:
    value = ""
    if option.takes_value:
        value = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
    about = _quoted(option.about).replace("[", "(").replace("]", ")").replace(":", "\\:")
    return " ".join(f"'*{name}[{about}]{value}'" for name in option.names)


def fish(commands: list[CommandFacts]) -> str:
    lines = []
    for one in commands:
        lines.append(
            f"complete -c geomix -n __fish_use_subcommand -f -a {one.name} -d '{_fish(one.about)}'"
        )
        within = f"complete -c geomix -n '__fish_seen_subcommand_from {one.name}'"
        if one.choices:
            lines.append(f"{within} -f -a '{' '.join(one.choices)}'")
        for option in one.options:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            value = (
                f" -x -a '{' '.join(option.choices)}'"
                if option.choices
                else " -r"
                if option.takes_value
                else ""
            )
            lines.append(f"{within} {names}{value} -d '{_fish(option.about)}'")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("'", "'\\''")


def _fish(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
