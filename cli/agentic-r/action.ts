import type { OptionTable } from '../../src/base/options/option-spec.ts';
import type { CommandContext } from '../program/command.ts';

/** One of the steps of `trawl agentic-r`. */
export interface Action<Table extends OptionTable> {
  /** Its arguments after the name of the action, for messages. */
  readonly arguments: readonly string[];
  /** The options that it uses. */
  readonly options: Table;
  /** Resolves to the exit code. `positionals` are the arguments without the name of the action. */
  readonly run: (context: CommandContext<Table>) => Promise<number>;
}

/** An action whose `run` is typed by its options. */
export function defineAction<const Table extends OptionTable>(action: Action<Table>): Action<Table> {
  return action;
}
