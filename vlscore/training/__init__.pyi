from .loop import Shown as Shown
from .run import train as train
from .settings import TrainingSettings as TrainingSettings
from .settings import check_names as check_names
from .settings import read_config as read_config
from .start import Start as Start
from .training_pairs import Preparation as Preparation
from .training_run import TrainingRun as TrainingRun
