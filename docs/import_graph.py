"""Import graph of vlscore, and the table of its sub-packages in docs/architecture.md.

    python docs/import_graph.py            # prints packages, circles, the longest chain of imports
    python docs/import_graph.py --write    # puts the table into docs/architecture.md

A sub-package is a folder or module directly below `vlscore/`. An import of one of its public names
(`__init__.pyi`) counts as an import of the file that defines it.
"""

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "vlscore"
PAGE = Path(__file__).with_name("architecture.md")
BEGIN, END = "<!-- packages: made by docs/import_graph.py -->", "<!-- end of packages -->"
# From the bottom up; a package may import the packages before it in this list, and no others.
PACKAGES = [
    "errors",
    "core",
    "text",
    "stats",
    "data",
    "findings",
    "claims",
    "perturb",
    "encoders",
    "embedding",
    "metrics",
    "retrieval",
    "evaluation",
    "training",
    "pages",
    "cli",
    "integrations",
]


def package_of(module: str) -> str:
    """Return the package of a module: "data" of "vlscore.data.study"."""
    return module.split(".")[1] if "." in module else ""


class ImportGraph:
    """Imports between the files of the package.

    Attributes:
        files: module -> its path.
        imports: module -> modules that it imports, public names resolved; late imports too.
        at_load: the same without imports inside functions and under TYPE_CHECKING.
        private_imports: (module, imported module) where an import names a file of another package.
    """

    def __init__(self, package: Path = PACKAGE) -> None:
        self.files = {self._name(package, path): path for path in sorted(package.rglob("*.py"))}
        self._packages = {m for m, path in self.files.items() if path.name == "__init__.py"}
        self._homes = {package: self._public_names(package) for package in self._packages}
        self.private_imports: list[tuple[str, str]] = []
        self.imports: dict[str, set[str]] = {}
        self.at_load: dict[str, set[str]] = {}
        for module, path in self.files.items():
            tree = ast.parse(path.read_text(encoding="utf-8"))
            late = set(_late(tree))
            everything = list(self._imported(module, tree))
            self.imports[module] = {target for _, target in everything} - {module}
            self.at_load[module] = {t for node, t in everything if node not in late} - {module}

    @staticmethod
    def _name(package: Path, path: Path) -> str:
        parts = path.relative_to(package.parent).with_suffix("").parts
        return ".".join(parts).removesuffix(".__init__")

    def _public_names(self, package: str) -> dict[str, str]:
        """Name -> module that defines it, in the stub of a package."""
        stub = self.files[package].with_suffix(".pyi")
        if not stub.exists():
            return {}
        return {
            alias.asname or alias.name: f"{package}.{node.module}" if node.module else package
            for node in ast.parse(stub.read_text(encoding="utf-8")).body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def _imported(self, module: str, tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [(alias.name, "") for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [(node.module, alias.name) for alias in node.names]
            else:
                continue
            for source, name in names:
                target = self._resolve(source, name)
                if target is None:
                    continue
                yield node, target
                named = f"{source}.{name}" if f"{source}.{name}" in self.files else source
                if package_of(named) != package_of(module) and named.count(".") > 1:
                    self.private_imports.append((module, named))

    def _resolve(self, source: str, name: str) -> str | None:
        if f"{source}.{name}" in self.files:
            return f"{source}.{name}"
        home = self._homes.get(source, {}).get(name)
        if home is not None and home in self._packages and home != source:
            return self._resolve(home, name)
        return home or (source if source in self.files else None)

    def packages(self) -> dict[str, set[str]]:
        """Package -> packages that it imports."""
        found: dict[str, set[str]] = {package: set() for package in PACKAGES}
        for module, targets in self.imports.items():
            for target in targets:
                one, other = package_of(module), package_of(target)
                if one and other and one != other and one in found:
                    found[one].add(other)
        return found

    def circles(self) -> list[list[str]]:
        """Groups of files that import each other, in any number of steps; `__init__` left out."""
        graph = {
            m: ts - self._packages for m, ts in self.imports.items() if m not in self._packages
        }
        reached = {module: _reached(graph, module) for module in graph}
        groups = {
            tuple(sorted(other for other in seen if module in reached.get(other, ())))
            for module, seen in reached.items()
            if module in seen
        }
        return [list(group) for group in sorted(groups)]

    def longest_chain(self) -> list[str]:
        """The longest chain of files of which each imports the next when it is loaded."""
        graph = {
            m: ts - self._packages for m, ts in self.at_load.items() if m not in self._packages
        }
        longest: dict[str, list[str]] = {}

        def chain(module: str, above: tuple[str, ...] = ()) -> list[str]:
            if module in above:
                return []
            if module not in longest:
                below = (chain(target, (*above, module)) for target in sorted(graph[module]))
                longest[module] = [module, *max(below, key=len, default=[])]
            return longest[module]

        return max((chain(module) for module in sorted(graph)), key=len)

    def drawing(self) -> str:
        """Return the packages from the top down, with their direct imports, as a Markdown table.

        It has no counts, so that a new file alone does not change the page.
        """
        packages = self.packages()
        lines = ["| package | imports |", "|---|---|"]
        for package in reversed(PACKAGES):
            below = [f"`{each}`" for each in PACKAGES if each in packages[package]]
            lines.append(f"| `{package}` | {', '.join(below) or '-'} |")
        return "\n".join(lines)

    def sizes(self) -> str:
        """Return the files and lines of each package, one package a line."""
        lines = []
        for package in reversed(PACKAGES):
            own = [path for module, path in self.files.items() if package_of(module) == package]
            count = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in own)
            lines.append(f"{package}: {len(own)} files, {count} lines")
        return "\n".join(lines)


def _late(tree: ast.Module) -> Iterator[ast.AST]:
    """Nodes inside functions, and below `if TYPE_CHECKING`."""
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from ast.walk(node)


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += graph.get(module, ())
    return seen


def page_with(drawing: str, page: str) -> str:
    """The page with its drawing replaced."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{drawing}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Print the measures, or write the drawing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the drawing into the page")
    graph = ImportGraph()
    if parser.parse_args().write:
        PAGE.write_text(page_with(graph.drawing(), PAGE.read_text(encoding="utf-8")), "utf-8")
        return
    print(graph.drawing())
    print(graph.sizes())
    print(f"private imports: {len(graph.private_imports)} {graph.private_imports[:5]}")
    print(f"circles of files: {graph.circles()}")
    chain = graph.longest_chain()
    print(f"longest chain: {len(chain)}: {' > '.join(chain)}")


if __name__ == "__main__":
    main()
