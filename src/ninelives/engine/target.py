"""Where a workflow lives: `module:attribute` or `path.py:attribute`, recorded with each run.

The attribute is a Workflow, a WorkflowBuilder, or a function without arguments that returns one.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pathlib
import sys
import traceback
import types

import msgspec

from ninelives import errors
from ninelives.graph.builder import WorkflowBuilder
from ninelives.graph.workflow import Workflow


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow's address. `location` is a module's name or a file's absolute path;
    `import_path` is the folder from which it is imported.
    """

    location: str
    attribute: str
    import_path: str = ""

    @property
    def text(self) -> str:
        return f"{self.location}:{self.attribute}"


FORM = "it names no attribute; write it as module:attribute or path.py:attribute"


def parse(text: str, *, folder: pathlib.Path) -> Target:
    """Read a target as written on a command line in `folder`.

    Raises:
        TargetInvalid: it is not of either form, or the file does not exist.
    """
    location, separator, attribute = text.rpartition(":")
    if not separator or not location or not attribute.isidentifier():
        raise errors.TargetInvalid(text, FORM)
    if not location.endswith(".py"):
        return Target(location=location, attribute=attribute, import_path=str(folder))
    path = (folder / location).resolve()
    if not path.is_file():
        raise errors.TargetInvalid(text, f"there is no file {path}")
    return Target(location=str(path), attribute=attribute, import_path=str(path.parent))


def load(target: Target) -> Workflow:
    """Import a target.

    Raises:
        TargetInvalid: it cannot be found, cannot be imported, or is no workflow.
        WorkflowInvalid: its graph has problems.
    """
    value = load_value(target)
    if not isinstance(value, Workflow):
        what = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise errors.TargetInvalid(target.text, f"it is {what}, not a workflow")
    return value


def load_value(target: Target) -> object:
    """Import a target of any type; a function is called, a builder built.

    Raises:
        TargetInvalid: it cannot be found or cannot be imported.
    """
    if target.import_path and target.import_path not in sys.path:
        sys.path.insert(0, target.import_path)
    try:
        return _value(target)
    except errors.NineLivesError:
        raise
    except Exception as error:
        where = _where(error)
        why = f"importing it raised {type(error).__name__}{where}: {error}"
        raise errors.TargetInvalid(target.text, why) from error


def _value(target: Target) -> object:
    module = _module(target)
    value: object = getattr(module, target.attribute, None)
    if value is None:
        raise errors.TargetInvalid(target.text, _missing(module, target.attribute))
    if inspect.isfunction(value):
        value = value()
    return value.build() if isinstance(value, WorkflowBuilder) else value


def _missing(module: types.ModuleType, attribute: str) -> str:
    there = [
        name
        for name, value in vars(module).items()
        if isinstance(value, Workflow | WorkflowBuilder)
    ]
    found = f"; workflows there: {', '.join(there)}" if there else ""
    return f"it has no attribute {attribute!r}{found}"


def _where(error: Exception) -> str:
    """The user's line that an error comes from."""
    if isinstance(error, SyntaxError):
        return f" at {error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if "importlib" not in frame.filename]
    return f" at {users[-1].filename}:{users[-1].lineno}" if users else ""


def _module(target: Target) -> types.ModuleType:
    if not target.location.endswith(".py"):
        try:
            return importlib.import_module(target.location)
        except ModuleNotFoundError as error:
            if error.name is None or not target.location.startswith(error.name):
                raise
            raise errors.TargetInvalid(target.text, f"there is no module {error.name!r}") from None
    path = pathlib.Path(target.location)
    present = sys.modules.get(path.stem)
    if present is not None and getattr(present, "__file__", None) == target.location:
        return present
    name = path.stem if present is None else f"ninelives_target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise errors.TargetInvalid(target.text, f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
