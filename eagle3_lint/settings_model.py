"""The keys of the settings file; also its published JSON Schema (docs/settings.schema.json)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from eagle3_lint.settings import FailOn

Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class SettingsModel(BaseModel):
    """Settings of eagle3-lint: [tool.eagle3-lint] in pyproject.toml, or eagle3-lint.toml."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, title="eagle3-lint settings")

    targets: tuple[str, ...] = Field(
        (), description="Runtimes and releases, as after --target: sglang==0.5.9, vllm>=0.12,<0.22"
    )
    target_model: str | None = Field(
        None, alias="target-model", description="A known name, a folder or a config.json"
    )
    select: tuple[str, ...] = Field((), description="Only these rules: ids, names or beginnings")
    ignore: dict[str, Reason] = Field(
        default_factory=dict, description="Rule (id, name or beginning of an id) to the reason why"
    )
    fail_on: FailOn = Field(
        "error", alias="fail-on", description="Least severity that makes the exit code 1"
    )


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of the settings."""
    schema = SettingsModel.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
