import { basename } from 'node:path';
import { usageError } from '../../src/base/errors.ts';
import type { OptionTable } from '../../src/base/options/option-spec.ts';
import * as option from '../options/option.ts';
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

export const OUT_OPTIONS = {
  out: option.text(
    'FILE|DIR',
    'For candidates and construct: the file to write. For hand-over: the folder to write. Required.',
  ),
} as const;

export const OVERWRITE_OPTION = option.flag('For hand-over and construct: replace the output if it exists.');

export const DATASET_OPTION = option.text(
  'NAME',
  "For hand-over and construct: the name of the data set, which is written to every row. Default: the candidates file's name without its extension.",
);

/** @throws TrawlError USAGE. */
export function requiredOut(out: string | undefined, action: string, example: string): string {
  if (out !== undefined) return out;
  throw usageError(`trawl agentic-r ${action} needs --out, such as --out ${example}.`);
}

/** The data set of a candidates file: Agentic-R names the file after it. */
export function datasetOf(dataset: string | undefined, candidates: string): string {
  return dataset ?? basename(candidates).replace(/\.(json|jsonl)(\.gz|\.zst)?$/i, '');
}
