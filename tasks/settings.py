"""What a run may be told, by flag, environment (``FIB_*``) or default. One place for every knob."""

import os
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from schemas.decision import Profile

CHECKOUT = Path(__file__).resolve().parent.parent
STARTER_DATA = CHECKOUT / "infra" / "starter" / "data"


class Settings(BaseSettings):
    """Defaults that need no service: a directory store, SQLite for MLflow and Prefect, one local Dask worker."""

    model_config = SettingsConfigDict(env_prefix="FIB_", frozen=True)

    home: Path = Field(default=CHECKOUT / ".fib", description="all state of this installation")
    store: str = Field(default="", description="object store: a directory or s3://bucket/prefix; default HOME/store")
    dataset: Path = Field(default=STARTER_DATA, description="flashinfer-trace folder to run on")
    channel: str = "quick"
    profile: Profile = "quick"
    dask_address: str | None = Field(default=None, description="a standing scheduler; default a local cluster")
    device_resource: str = "device"
    device: str = Field(default="cpu", pattern=r"^(cpu|cuda:\d+)$", description="cpu or cuda:INDEX, for local runs")
    scale: str = Field(
        default="cpu", description="definitions tagged scale:<other> or tour:left-out are left out; '' takes all"
    )
    split_key: str = Field(default="fib-split-1", description="keyed hash that sends families to holdout")
    max_workloads: int = Field(default=6, ge=1, description="workloads kept per definition after deduplication")
    invalid_share_max: float = Field(default=0.02, ge=0, le=1)
    campaign: int = Field(default=0, ge=0, description="number of the campaign; another number means fresh rounds")
    campaigns: tuple[int, ...] = Field(default=(), description="numbers of several campaigns; the first is published")
    budget_s: float | None = Field(default=None, gt=0, description="a run stops between visits after this; none: never")
    new_signer: bool = Field(default=False, description="go on with a channel that another key signed")
    visit_limit_s: float = Field(default=10.0, gt=0)
    build_limit_s: float = Field(default=120.0, gt=0)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Campaigns to run, in order; never empty."""
        return self.campaigns or (self.campaign,)

    @property
    def store_url(self) -> str:
        """Where objects are published."""
        return self.store or str(self.home / "store")

    @property
    def tracking_uri(self) -> str:
        """MLflow's tracking store."""
        return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{self.home / 'mlflow' / 'mlflow.db'}"

    @property
    def build_dir(self) -> Path:
        """Compiled artefacts, keyed by content and toolchain."""
        return self.home / "build"


def settings_from(**given: object) -> Settings:
    """Settings with what was given; what is None comes from the environment or the default."""
    return Settings.model_validate(Settings().model_dump() | {k: v for k, v in given.items() if v is not None})
