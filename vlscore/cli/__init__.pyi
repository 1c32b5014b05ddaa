from .app import app as app
from .app import command_line as command_line
from .app import commands as commands
from .app import main as main
