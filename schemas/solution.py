"""Solution: a candidate kernel (sources, build spec, entry point, declared support)."""

from pathlib import PurePosixPath
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from schemas.base import Digest, NonEmpty, PublicRecord
from schemas.canonical import digest_of

Language = Literal["python", "triton", "cpp", "cuda", "tilelang"]


class SourceFile(PublicRecord):
    """One source; the path is relative and stays inside the build directory."""

    path: NonEmpty
    content: NonEmpty

    @model_validator(mode="after")
    def _inside(self) -> Self:
        path = PurePosixPath(self.path)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"source path {self.path!r} leaves the build directory")
        return self


class BuildSpec(PublicRecord):
    """How to turn sources into a callable. ``compile_options`` and ``supports`` are extension keys of ours."""

    language: Language
    target_hardware: tuple[NonEmpty, ...] = Field(min_length=1)
    entry_point: NonEmpty
    dependencies: tuple[NonEmpty, ...] = ()
    destination_passing_style: bool = True
    binding: Literal["tvm-ffi", "torch"] | None = None
    compile_options: tuple[str, ...] = ()
    supports: tuple[NonEmpty, ...] = ()


class Solution(PublicRecord):
    """A candidate. Name and author are labels; identity is everything that changes behaviour."""

    name: NonEmpty
    definition: NonEmpty
    author: NonEmpty
    spec: BuildSpec
    sources: tuple[SourceFile, ...] = Field(min_length=1)
    description: str | None = None

    @model_validator(mode="after")
    def _entry_exists(self) -> Self:
        if self.spec.entry_point.count("::") != 1:
            raise ValueError(f"entry_point {self.spec.entry_point!r} is not of the form file::function")
        paths = [source.path for source in self.sources]
        if len(set(paths)) != len(paths):
            raise ValueError("two sources share a path")
        if self.entry_file not in paths:
            raise ValueError(f"entry file {self.entry_file!r} is not among the sources {paths}")
        return self

    @property
    def entry_file(self) -> str:
        """Path of the source that holds the entry point."""
        return self.spec.entry_point.split("::")[0]

    @property
    def entry_symbol(self) -> str:
        """Function name of the entry point."""
        return self.spec.entry_point.split("::")[1]

    def digest_for(self, definition_digest: Digest) -> str:
        """Identity under a contract: the same sources for another definition are another solution."""
        return digest_of({"definition": definition_digest} | self.identity())

    def identity(self) -> Any:
        """Everything that changes behaviour, except the definition digest that :meth:`digest_for` adds."""
        return {
            "language": self.spec.language,
            "sources": sorted([source.path, source.content] for source in self.sources),
            "entry_point": self.spec.entry_point,
            "binding": self.spec.binding,
            "destination_passing_style": self.spec.destination_passing_style,
            "dependencies": list(self.spec.dependencies),
            "compile_options": list(self.spec.compile_options),
            "supports": list(self.spec.supports),
        }
