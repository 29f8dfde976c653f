"""Every error that ninelives raises, named by the condition; imports nothing of the project.

Fields go in, the message comes out of `__str__`, so that errors pickle with no extra code. A
message says what happened, to which run, and what to do next. `Interrupt` and its children are
control flow: they derive from BaseException, so that `except Exception` cannot swallow them.
"""

from ninelives.errors.acts import ChannelsInvalid as ChannelsInvalid
from ninelives.errors.acts import DatabaseUnavailable as DatabaseUnavailable
from ninelives.errors.acts import DeliveryFailed as DeliveryFailed
from ninelives.errors.acts import EffectFailed as EffectFailed
from ninelives.errors.acts import EffectNotOpen as EffectNotOpen
from ninelives.errors.acts import EffectRefused as EffectRefused
from ninelives.errors.acts import KeyConflict as KeyConflict
from ninelives.errors.acts import LetterNotDead as LetterNotDead
from ninelives.errors.acts import StepFailed as StepFailed
from ninelives.errors.acts import TransactionFailed as TransactionFailed
from ninelives.errors.acts import TransactionMisused as TransactionMisused
from ninelives.errors.acts import TransactionUnknown as TransactionUnknown
from ninelives.errors.base import Cancelled as Cancelled
from ninelives.errors.base import Interrupt as Interrupt
from ninelives.errors.base import NineLivesError as NineLivesError
from ninelives.errors.base import OwnershipLost as OwnershipLost
from ninelives.errors.base import Parked as Parked
from ninelives.errors.base import Stopped as Stopped
from ninelives.errors.base import UsageError as UsageError
from ninelives.errors.crashlab import BoundaryUnknown as BoundaryUnknown
from ninelives.errors.crashlab import KillsInvalid as KillsInvalid
from ninelives.errors.ledger import BudgetNameInvalid as BudgetNameInvalid
from ninelives.errors.ledger import BudgetUnknown as BudgetUnknown
from ninelives.errors.ledger import HoldNotOpen as HoldNotOpen
from ninelives.errors.ledger import ModelRefused as ModelRefused
from ninelives.errors.ledger import ModelUnavailable as ModelUnavailable
from ninelives.errors.runs import GraphChanged as GraphChanged
from ninelives.errors.runs import HandlerEnded as HandlerEnded
from ninelives.errors.runs import InputInvalid as InputInvalid
from ninelives.errors.runs import IterationsExceeded as IterationsExceeded
from ninelives.errors.runs import MessageUnhandled as MessageUnhandled
from ninelives.errors.runs import NotAwaited as NotAwaited
from ninelives.errors.runs import RunConflict as RunConflict
from ninelives.errors.runs import RunEnded as RunEnded
from ninelives.errors.runs import RunIdInvalid as RunIdInvalid
from ninelives.errors.runs import RunNotFound as RunNotFound
from ninelives.errors.runs import RunOwned as RunOwned
from ninelives.errors.runs import SettingsInvalid as SettingsInvalid
from ninelives.errors.runs import TargetInvalid as TargetInvalid
from ninelives.errors.runs import TargetUnrecorded as TargetUnrecorded
from ninelives.errors.runs import WorkflowInvalid as WorkflowInvalid
from ninelives.errors.store import StaleEpoch as StaleEpoch
from ninelives.errors.store import StoreFailed as StoreFailed
from ninelives.errors.store import StoreLost as StoreLost
from ninelives.errors.store import StoreRefused as StoreRefused
from ninelives.errors.store import Undecodable as Undecodable
from ninelives.errors.store import Unencodable as Unencodable
