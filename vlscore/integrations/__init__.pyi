from .grpo_reward import ReportReward as ReportReward
from .harnesses import EVALUATE_MODULE as EVALUATE_MODULE
from .harnesses import flat_numbers as flat_numbers
from .harnesses import inspect_scorer as inspect_scorer
from .harnesses import lm_eval_results as lm_eval_results
from .lightning_callback import LogReportMetric as LogReportMetric
from .report_metric import ReportMetric as ReportMetric
