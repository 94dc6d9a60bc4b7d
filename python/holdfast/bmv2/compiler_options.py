"""The command line of ``p4c``, ``p4c-bm2-ss`` and ``p4c-bm2-psa``, as a value.

``p4c`` takes the directory of its output with ``-o``, the others its file. What Holdfast has no use for is accepted and named in
:attr:`CompilerOptions.ignored`; what asks for something that is not there is refused.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from holdfast.errors import HoldfastError

DRIVER = "p4c"
ARCHITECTURES = {"p4c": None, "p4c-bm2-ss": "v1model", "p4c-bm2-psa": "psa"}
"""The compiler commands, each with the architecture it compiles for; None: ``p4c`` takes it as an option."""

_P4INFO_ENDINGS = (".txt", ".txtpb", ".json", ".bin")
_P4INFO_FORMATS = {"binary": ".bin", "json": ".json", "text": ".txt"}

_LANGUAGES = ("p4-16", "p4_16", "16", "P4₁₆")

_FLAGS = {
    "-v": "nothing more is said",
    "--debug": "nothing more is said",
    "-g": "a program always knows its lines",
    "-S": "there is no assembler",
    "-c": "there is no assembler",
    "--compile": "there is no assembler",
    "--ndebug": "assertions stay",
    "--emit-externs": "externs are the architecture's",
    "--parser-inline-opt": "parsers are not inlined",
    "--loopsUnroll": "loops stay loops",
    "--doNotEmitIncludes": "what --pp writes has no includes",
    "-MG": "a file that is missing is an error",
    "--nocpp": "the preprocessor is a part of the compiler",
}
_VALUES = {
    "--toJSON": "the tree is not written; holdfast compile --emit-ir prints what the program becomes",
    "--toJson": "the tree is not written; holdfast compile --emit-ir prints what the program becomes",
    "--dump": "there are no passes to write down",
    "--top4": "there are no passes to write down",
    "--excludeFrontendPasses": "there are no such passes",
    "--excludeMidendPasses": "there are no such passes",
    "--disable-annotations": "annotations without a meaning here are passed over",
    "--maxErrorCount": "all errors are told",
    "--metrics": "the code is not measured",
    "--p4runtime-entries-file": "constant entries are in the program",
    "--p4runtime-entries-files": "constant entries are in the program",
    "-T": "nothing more is said",
    "-Xassembler": "there is no assembler",
    "-Xlinker": "there is no linker",
}
_REFUSED = ("-###", "--fromJSON", "--listFrontendPasses", "--gdb", "--cgdb", "--lldb")


@dataclass(frozen=True)
class Dependencies:
    """A rule for ``make``: the files of which the program is made.

    ``file``: where it is written; None: standard output. ``target``: what depends on them. ``phony``: each file is a target, too,
    so that ``make`` does not stop where one is gone.
    """

    file: Path | None
    target: str
    phony: bool

    def rule(self, files: Sequence[str]) -> str:
        """Return the text of the rule for the source files ``files``, the program's own first."""
        names = [name.replace("$", "$$").replace("#", "\\#").replace(" ", "\\ ") for name in files]
        text = f"{self.target}: {' '.join(names)}\n"
        return text + "".join(f"{name}:\n" for name in names[1:] if self.phony)


@dataclass(frozen=True)
class CompilerOptions:
    """The options that have a meaning here.

    ``source``: what is compiled, which with ``-e`` is the text that an earlier ``-E`` has left. ``program``: the file for the
    compiled program, None to write none. ``p4info``: files, each with the ending of its format. ``architecture``: that the program
    is to be for. ``ignored``: a sentence about each other option. ``only_preprocess``: nothing is compiled. ``preprocessed``: the
    file for the program after the preprocessor, with the lines of the source; None: standard output. ``printed``: the file for the
    same without places, or None. ``dependencies``: the rule for ``make``, or None.
    """

    source: Path
    program: Path | None
    p4info: tuple[tuple[Path, str], ...]
    architecture: str
    defines: tuple[str, ...]
    includes: tuple[Path, ...]
    warnings_are_errors: bool
    ignored: tuple[str, ...]
    only_preprocess: bool
    preprocessed: Path | None
    printed: Path | None
    dependencies: Dependencies | None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise HoldfastError(f"{self.prog}: {message}")


def _parser(name: str, version: str) -> argparse.ArgumentParser:
    it = _Parser(
        prog=name,
        allow_abbrev=False,
        usage=f"{name} [options] FILE.p4",
        description="Compile P4_16 for a Holdfast switch, with the options of p4c. The program replaces BMv2's JSON.",
    )
    it.add_argument("--version", "-V", action="version", version=f"holdfast {version}")
    it.add_argument("--target", "-b", default="bmv2", help="bmv2 only")
    it.add_argument("--arch", "-a", help="v1model (the default) or psa")
    it.add_argument("--std", "-x", default="p4-16", help="p4-16 only")
    it.add_argument("--p4v", default="16", help="16 only")
    it.add_argument("-o", "--output", type=Path, metavar="PATH", help="p4c: directory of the output; others: file")
    it.add_argument(
        "--p4runtime-files", metavar="FILE,FILE", help="P4Info; the ending is the format: .txt, .txtpb, .json, .bin"
    )
    it.add_argument("--p4runtime-file", type=Path, metavar="FILE", help="P4Info, in the format of --p4runtime-format")
    it.add_argument("--p4runtime-format", choices=_P4INFO_FORMATS, default="binary")
    it.add_argument("-D", action="append", default=[], metavar="NAME[=VALUE]", help="a macro")
    it.add_argument("-U", action="append", default=[], metavar="NAME", help="no such macro")
    it.add_argument("-I", action="append", default=[], type=Path, metavar="DIR", help="a directory of #include <...>")
    it.add_argument("-Xp4c", action="append", default=[], metavar="OPTIONS", help="more options")
    it.add_argument(
        "-Xpreprocessor", action="append", default=[], metavar="OPTIONS", help="more options: -D, -U and -I"
    )
    it.add_argument("-E", "--preprocess", dest="preprocess", action="store_true", help="only preprocess")
    it.add_argument("-e", dest="preprocessed", action="store_true", help="p4c: compile what an earlier -E left in -o")
    it.add_argument("--pp", type=Path, metavar="FILE", help="write the program after the preprocessor")
    it.add_argument("-M", dest="make", action="store_true", help="only write a rule for make")
    it.add_argument("-MD", dest="make_also", action="store_true", help="write a rule for make, too")
    it.add_argument("-MF", type=Path, metavar="FILE", help="the file of the rule")
    it.add_argument("-MP", dest="phony", action="store_true", help="each included file is a target, too")
    it.add_argument("-MT", "-MQ", dest="targets", action="append", default=[], metavar="NAME", help="the rule's target")
    it.add_argument("-O", dest="optimise", nargs="?", const="", help=argparse.SUPPRESS)
    for flag in _FLAGS:
        it.add_argument(flag, dest=f"flag {flag}", action="store_const", const="", help=argparse.SUPPRESS)
    for option in _VALUES:
        it.add_argument(option, dest=f"value {option}", metavar="VALUE", help=argparse.SUPPRESS)
    for option in _REFUSED:
        it.add_argument(option, dest=f"refused {option}", nargs="?", const="", help=argparse.SUPPRESS)
    it.add_argument("source", nargs="*", type=Path, help=argparse.SUPPRESS)
    return it


def parse(name: str, arguments: Sequence[str], version: str) -> CompilerOptions:
    """Return the options of a command line of one of :data:`ARCHITECTURES`. Raises :class:`HoldfastError` with one sentence."""
    parser = _parser(name, version)
    words, warnings = _split_warnings(arguments)
    given = parser.parse_intermixed_args(words)
    more = [word for text in (*given.Xp4c, *given.Xpreprocessor) for word in shlex.split(text)]
    if more:
        words, also = _split_warnings([*words, *more])
        warnings += also
        given = parser.parse_intermixed_args(words)
    _check(parser, name, given)
    (source,) = given.source
    ignored = [f"{option} ({why})" for option, why in _FLAGS.items() if getattr(given, f"flag {option}") is not None]
    ignored += [f"{option} ({why})" for option, why in _VALUES.items() if getattr(given, f"value {option}") is not None]
    ignored += ["-O (the program is always optimised)"] if given.optimise is not None else []
    ignored += [f"{each} (warnings are told, and end nothing)" for each in warnings if each != "--Werror"]
    left = _preprocessed_file(name, source, given.output)
    return CompilerOptions(
        source=left if given.preprocessed and left is not None else source,
        program=_program_file(name, source, given.output),
        p4info=tuple(_p4info_files(parser, given)),
        architecture=given.arch or ARCHITECTURES[name] or "v1model",
        defines=("__TARGET_BMV2__", *(each for each in given.D if each.partition("=")[0] not in given.U)),
        includes=tuple(given.I),
        warnings_are_errors="--Werror" in warnings,
        ignored=tuple(ignored),
        only_preprocess=given.preprocess or given.make,
        preprocessed=left,
        printed=given.pp,
        dependencies=_dependencies(name, source, given),
    )


def _split_warnings(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the words of a command line; return those that are not about warnings (``-W...``), then those that are."""
    about = [word for word in arguments if word.startswith(("--W", "-W"))]
    return [word for word in arguments if word not in about], about


def _check(parser: argparse.ArgumentParser, name: str, given: argparse.Namespace) -> None:
    for option in _REFUSED:
        if getattr(given, f"refused {option}") is not None:
            parser.error(f"{option} is not possible: the compiler writes programs, P4Info, P4 and rules for make alone")
    if given.preprocessed and (name != DRIVER or given.preprocess or given.make):
        parser.error("-e compiles what p4c -E has left: it is an option of p4c, without -E and -M")
    if (given.MF or given.phony or given.targets) and not (given.make or given.make_also):
        parser.error("-MF, -MP, -MT and -MQ belong to -M or -MD")
    if given.target != "bmv2":
        parser.error(f"--target {given.target} is not possible: the target is a Holdfast switch, in the place of bmv2")
    if given.std not in _LANGUAGES or given.p4v not in ("16", "1.2"):
        parser.error("the language is P4_16; P4_14 is translated by p4test of p4c")
    own = ARCHITECTURES[name]
    if given.arch not in (None, "v1model", "psa") or (own and given.arch not in (None, own)):
        parser.error(f"--arch {given.arch} is not possible: it is {own or 'v1model or psa'}")
    if len(given.source) != 1:
        parser.error(
            "give one program" if not given.source else f"one program, not {', '.join(map(str, given.source))}"
        )


def _program_file(name: str, source: Path, output: Path | None) -> Path | None:
    if name == DRIVER:
        return (output or Path()) / f"{source.stem}.json"
    return output


def _preprocessed_file(name: str, source: Path, output: Path | None) -> Path | None:
    """Return the file for what ``-E`` writes: ``p4c`` has one in its directory, the others print it, or write it to ``-o``."""
    return (output or Path()) / f"{source.stem}.p4i" if name == DRIVER else output


def _dependencies(name: str, source: Path, given: argparse.Namespace) -> Dependencies | None:
    if not (given.make or given.make_also):
        return None
    beside = _preprocessed_file(name, source, given.output)
    file = given.MF
    if file is None:  # -M alone is in the place of the program's text, -MD in a file of its own
        file = beside if given.make else (beside or source).with_suffix(".d")
    return Dependencies(file, " ".join(given.targets) or f"{source.stem}.o", given.phony)


def _p4info_files(parser: argparse.ArgumentParser, given: argparse.Namespace) -> list[tuple[Path, str]]:
    """Return the files for P4Info, each with the ending of its format."""
    files = [Path(each) for each in (given.p4runtime_files or "").split(",") if each]
    for file in files:
        if file.suffix not in _P4INFO_ENDINGS:
            parser.error(f"--p4runtime-files {file}: the ending is one of {', '.join(_P4INFO_ENDINGS)}")
    found = [(file, file.suffix) for file in files]
    if given.p4runtime_file is not None:
        found.append((given.p4runtime_file, _P4INFO_FORMATS[given.p4runtime_format]))
    return found


__all__ = ["ARCHITECTURES", "CompilerOptions", "Dependencies", "parse"]
