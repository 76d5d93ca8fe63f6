import { readConfigFile } from './config-file.ts';
import { environmentName, type OptionTable, type OptionValues } from './option-spec.ts';
import { optionValue } from './option-value.ts';
import { parseArguments } from './parse-arguments.ts';

export interface OptionSources {
  /** Name of the command, and of its section in the configuration file. */
  readonly command: string;
  /** Names of all commands: other sections of the configuration file are refused. Default: any name is allowed. */
  readonly commands?: readonly string[];
  /** Arguments after the command's name. */
  readonly argv: readonly string[];
  /** Whether neither the environment nor a configuration file is read. Default: false. */
  readonly argumentsOnly?: boolean;
  /** Default: the process's environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Default: the current folder. */
  readonly folder?: string;
}

export interface ResolvedOptions<Table extends OptionTable> {
  readonly options: OptionValues<Table>;
  readonly positionals: readonly string[];
  /** Names of the options that were set, not left at their defaults. */
  readonly given: ReadonlySet<string>;
}

/** Environment variables that other programs define; Trawl gives them the same meaning. */
type ForeignVariable = `HF_${string}` | 'HUGGING_FACE_HUB_TOKEN' | 'TRANSFORMERS_OFFLINE' | 'XDG_CACHE_HOME';

/** An environment variable that is not an option of a command, such as TRAWL_ISA. Only this folder reads the environment. */
export function environmentVariable(name: `TRAWL_${string}` | ForeignVariable): string | undefined {
  return process.env[name];
}

/** Takes a variable out of the environment of this process, and so of the programs that it starts. */
export function takenVariable(name: string): string | undefined {
  const value = process.env[name];
  delete process.env[name];
  return value;
}

/** The environment of this process with other values of some variables, for a program that it starts. */
export function environmentWith(variables: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { ...process.env, ...variables };
}

/**
 * Resolves the options of a command. Flags take precedence over environment variables, these over the configuration file, and the
 * file over defaults.
 *
 * @throws TrawlError USAGE for the command line, CONFIG_INVALID for environment and file.
 */
export function resolveOptions<Table extends OptionTable>(
  table: Table,
  sources: OptionSources,
): ResolvedOptions<Table> {
  const env = sources.argumentsOnly ? {} : (sources.env ?? process.env);
  const { flags, positionals } = parseArguments(table, sources.argv, sources.command);
  const configFile = flags.get('config')?.at(-1) ?? env[environmentName('config')];
  const file = sources.argumentsOnly ? new Map<string, unknown>() : readConfigFile(table, sources, configFile);
  const values: Record<string, unknown> = {};
  const given = new Set<string>();
  for (const [name, spec] of Object.entries(table)) {
    const variable = environmentName(name);
    const fromFlag = flags.get(name);
    const fromEnvironment = env[variable];
    if (fromFlag !== undefined || (fromEnvironment !== undefined && fromEnvironment !== '') || file.has(name))
      given.add(name);
    if (fromFlag !== undefined) values[name] = optionValue(spec, fromFlag, 'USAGE', `--${name}`);
    else if (fromEnvironment !== undefined && fromEnvironment !== '') {
      const texts = spec.type === 'list' ? fromEnvironment.split(',') : [fromEnvironment];
      values[name] = optionValue(spec, texts, 'CONFIG_INVALID', variable);
    } else if (file.has(name)) values[name] = file.get(name);
    else
      values[name] =
        spec.type === 'flag' ? (spec.default ?? false) : spec.type === 'list' ? Object.freeze([]) : spec.default;
  }
  return { options: Object.freeze(values) as OptionValues<Table>, positionals, given };
}
