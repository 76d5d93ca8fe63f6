import { asTrawlError, TrawlError } from '../../src/base/errors.ts';
import type { OptionTable } from '../../src/base/options/option-spec.ts';
import { type OptionSources, type ResolvedOptions, resolveOptions } from '../../src/base/options/resolve-options.ts';
import * as option from '../options/option.ts';

/** Exit codes, the same for every command. */
export const EXIT = {
  ok: 0,
  /** The work failed; the message says why. */
  failed: 1,
  /** The command line has a mistake. */
  usage: 2,
  /** A check found problems (`trawl verify`, `--plan`, `--dry-run`). */
  problems: 3,
  /** Stopped by SIGTERM; the same command resumes the work. EX_TEMPFAIL of sysexits.h. */
  resumable: 75,
  /** Stopped by Ctrl-C or SIGTERM before the work was done. */
  interrupted: 130,
} as const;

export interface RunSettings {
  /** Receives the results. Default: standard output. */
  readonly out?: (text: string) => void;
  /** Whether errors are reported as JSON. Default: the value of `--json`. */
  readonly jsonErrors?: boolean;
  /** Whether options come from the arguments alone, not from the configuration file or the environment. Default: false. */
  readonly argumentsOnly?: boolean;
}

/** The commands of the program, for a command that runs or describes others. */
export interface Program {
  readonly commands: () => Promise<readonly Command[]>;
  /** Runs a command to its end and resolves to the exit code. Errors are reported on stderr. */
  readonly run: (name: string, argv: readonly string[], settings?: RunSettings) => Promise<number>;
}

/** What a command works with besides its arguments. */
interface Host {
  /** Aborts on Ctrl-C or SIGTERM, with the signal's name as the reason. */
  readonly signal: AbortSignal;
  /** Writes a result to stdout. */
  out(text: string): void;
  /** Writes progress or a remark to stderr; nothing with `--quiet`. */
  note(text: string): void;
  readonly program: Program;
}

export interface CommandContext<Table extends OptionTable>
  extends ResolvedOptions<Table & typeof COMMON_OPTIONS>,
    Host {}

/** What a function gets that serves several commands. */
export type AnyContext = CommandContext<Record<never, never>>;

interface Positionals {
  /** For the usage line: `<index> [query]`. */
  readonly usage: string;
  readonly help: Readonly<Record<string, string>>;
  /** The words that the first argument may be; undefined if it may be any text. */
  readonly words?: readonly string[];
  /** Fewest arguments. Default: as many as `usage` has in angle brackets. */
  readonly min?: number;
  /** Most arguments. Default: as many as `usage` has. */
  readonly max?: number;
}

/** The argument of a command that reads one index, wherever it is. */
export const INDEX_OR_ADDRESS: Positionals = {
  usage: '<index>',
  help: { index: 'The index directory, or its address in Milvus (milvus://…) or OpenSearch (opensearch://…).' },
};

/** Options that every command has. */
const COMMON_OPTIONS = {
  config: option.text(
    'FILE',
    'Configuration file: JSON with one object of options per command. Default: trawl.config.json in the current folder, if it exists.',
  ),
  json: option.flag('Print the result and errors as JSON.'),
  quiet: option.flag('Print only results and errors: no progress, no remarks.'),
} as const satisfies OptionTable;

interface Described {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** Paragraphs for the command's own help. */
  readonly description: string;
  readonly positionals: Positionals;
  readonly examples: readonly string[];
  /**
   * Whether a stopped command can be resumed. If so, a repeated SIGTERM does not end it immediately, which would lose the
   * checkpoint and the exit code: schedulers send the signal more than once (Slurm to the step and through srun).
   */
  readonly resumable?: boolean;
  /** Whether its arguments may be addresses in Milvus or OpenSearch (docs/cluster.md). If not, an address is refused before it is taken for a path. */
  readonly takesStoreAddress?: boolean;
}

export interface Command extends Described {
  /** The options of the command, then those that every command has. */
  readonly options: OptionTable;
  /** @throws TrawlError USAGE or CONFIG_INVALID. */
  resolve(sources: OptionSources): CommandCall;
}

/** A command with the arguments of a call. */
interface CommandCall {
  readonly positionals: readonly string[];
  readonly json: boolean;
  readonly quiet: boolean;
  /** Resolves to the exit code. */
  run(host: Host): Promise<number>;
}

/** Waits for work that the same command resumes. @throws TrawlError CANCELLED with `message`, marked as resumable, if it is cancelled. */
export async function resumable<T>(work: Promise<T>, message: string): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (asTrawlError(error).code !== 'CANCELLED') throw error;
    throw new TrawlError('CANCELLED', message, { details: { resumable: true }, cause: error });
  }
}

/** A command whose `run` is typed by its options. */
export function defineCommand<const Table extends OptionTable>({
  options: own,
  run,
  ...described
}: Described & {
  readonly options: Table;
  /** Resolves to the exit code. */
  readonly run: (context: CommandContext<Table>) => Promise<number>;
}): Command {
  const options = { ...own, ...COMMON_OPTIONS };
  return {
    ...described,
    options,
    resolve(sources) {
      const resolved = resolveOptions(options, sources);
      const { json, quiet } = resolved.options;
      return {
        positionals: resolved.positionals,
        json: Boolean(json),
        quiet: Boolean(quiet),
        run: (host) => run({ ...resolved, ...host }),
      };
    },
  };
}
