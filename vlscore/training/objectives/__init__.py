"""The papers' training objectives: functions of the features of a batch of pairs."""
