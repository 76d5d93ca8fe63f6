import type { OptionTable } from '../../src/base/options/option-spec.ts';
import type { CommandContext } from '../program/command.ts';

/** One of the steps of `trawl agentic-r`. */
export interface Action<Table extends OptionTable = OptionTable> {
  /** Its arguments after the name of the action, for messages. */
  readonly arguments: readonly string[];
  /** The options that it uses. */
  readonly options: Table;
  /** Resolves to the exit code. `positionals` are the arguments without the name of the action. */
  run(context: CommandContext<Table>): Promise<number>;
}

/** Checks `run` against the types of its options; the table of actions erases them. */
export function defineAction<const Table extends OptionTable>(action: Action<Table>): Action {
  return action as unknown as Action;
}
