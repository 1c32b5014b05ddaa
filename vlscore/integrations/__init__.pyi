from .grpo_reward import ReportReward as ReportReward
from .report_metric import ReportMetric as ReportMetric
