from .command_line import app as app
from .command_line import main as main
