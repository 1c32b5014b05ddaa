from .grpo_reward import ReportReward as ReportReward
from .report_metric import ReportMetric as ReportMetric
from .vlscore_cxr import VLSCORE_NORM_LIMITR as VLSCORE_NORM_LIMITR
from .vlscore_cxr import LIMITREncoder as LIMITREncoder
from .vlscore_cxr import VLscore as VLscore
from .vlscore_cxr import triangle_vlscore as triangle_vlscore
