"""Settings of a watch; it loads nothing heavy."""

from dataclasses import dataclass

from vlscore.core import check_settings
from vlscore.errors import InvalidSetting

#: Days of looks for which the probability of a false alarm is stated.
YEAR = 365


@dataclass(frozen=True, kw_only=True)
class WatchSettings:
    """Settings of a watch; they hold from one --restart to the next.

    Attributes:
        rate: Largest probability of any false alarm in a year without a change, for all values
            together.
        reference_days: Days with reports in the reference period, before anything is compared.
        reference_reports: Least number of reports in the reference period.
        weekends_alike: Compare Saturdays and Sundays with all days. Default: with one another.
        seed: Seed of the order of equal days.

    Raises: InvalidSetting that names the first invalid setting.
    """

    rate: float = 0.1
    reference_days: int = 30
    reference_reports: int = 300
    weekends_alike: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, reference_days=2, reference_reports=1, seed=0)
        if not 0 < self.rate < 1:
            raise InvalidSetting(f"rate is a probability, above 0 and below 1, not {self.rate!r}")

    @property
    def threshold(self) -> float:
        """Evidence at which an alarm is given."""
        return YEAR / self.rate
