import type { OptionTable, OptionValues } from '../src/options/option-spec.ts';

/** Exit codes, the same for every command. */
export const EXIT = {
  ok: 0,
  /** The work failed; the message says why. */
  failed: 1,
  /** The command line was not understood. */
  usage: 2,
  /** A check ran and found problems (`trawl verify`). */
  problems: 3,
  /**
   * A build was stopped by SIGTERM and has kept what it did: the same command goes on there. 75 is EX_TEMPFAIL of
   * sysexits.h.
   */
  resumable: 75,
  /** Stopped by Ctrl-C or SIGTERM before the work was done. */
  interrupted: 130,
} as const;

export interface CommandContext<Table extends OptionTable> {
  readonly options: OptionValues<Table & typeof COMMON_OPTIONS>;
  readonly positionals: readonly string[];
  /** Options set by flag, environment or file, as opposed to defaults. */
  readonly given: ReadonlySet<string>;
  /** Aborted by Ctrl-C or SIGTERM; the reason is the signal's name. */
  readonly signal: AbortSignal;
  /** Results: what a pipe wants. */
  out(text: string): void;
  /** Progress and remarks for a person; silent with `--quiet`. */
  note(text: string): void;
}

export interface Positionals {
  /** As in the usage line: `<index> [query]`. */
  readonly usage: string;
  readonly help: Readonly<Record<string, string>>;
  readonly min: number;
  readonly max: number;
}

export interface Command<Table extends OptionTable = OptionTable> {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** Paragraphs for the command's own help. */
  readonly description: string;
  readonly positionals: Positionals;
  readonly options: Table;
  readonly examples: readonly string[];
  /**
   * It goes on where it was stopped. Schedulers send SIGTERM more than once (Slurm to the step and through srun), which is
   * then no wish to end at once: that would lose the checkpoint and the exit code.
   */
  readonly resumable?: boolean;
  /** Resolves to the exit code. */
  run(context: CommandContext<Table>): Promise<number>;
}

/** Keeps the types of the options for `run` and forgets them for the table of commands. */
export function defineCommand<const Table extends OptionTable>(command: Command<Table>): Command {
  return command as unknown as Command;
}

/** Options that every command has. */
export const COMMON_OPTIONS = {
  config: {
    kind: 'string',
    value: 'FILE',
    help: 'Configuration file (JSON: one object per command). Without it trawl.config.json of the current folder is read where it exists.',
  },
  json: { kind: 'flag', help: 'Print the result, and an error, as JSON.' },
  quiet: { kind: 'flag', help: 'No progress and no remarks; results and errors only.' },
} as const satisfies OptionTable;
