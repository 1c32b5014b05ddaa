from .report_page import ExplainedStudy as ExplainedStudy
from .report_page import Holding as Holding
from .report_page import ReportPage as ReportPage
from .report_page import explain_study as explain_study
from .report_page import report as report
from .sentence_maps import SentenceMap as SentenceMap
from .sentence_maps import sentence_maps as sentence_maps
