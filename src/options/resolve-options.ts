import { readConfigFile } from './config-file.ts';
import { environmentName, type OptionTable, type OptionValues } from './option-spec.ts';
import { optionValue } from './option-value.ts';
import { parseArguments } from './parse-arguments.ts';

export interface OptionSources {
  /** Name of the command: its section of the configuration file. */
  readonly command: string;
  /** Names of all commands: what the configuration file may have sections for. Without it every name is allowed. */
  readonly commands?: readonly string[];
  /** Arguments behind the command's name. */
  readonly argv: readonly string[];
  /** Default: the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Default: the current folder. */
  readonly folder?: string;
}

export interface ResolvedOptions<Table extends OptionTable> {
  readonly options: OptionValues<Table>;
  readonly positionals: readonly string[];
  /** Options that a person set somewhere, as opposed to defaults. */
  readonly given: ReadonlySet<string>;
}

/** Variables that other programs define and that are read as they define them. */
export type ForeignVariable = `HF_${string}` | 'HUGGING_FACE_HUB_TOKEN' | 'TRANSFORMERS_OFFLINE' | 'XDG_CACHE_HOME';

/** The value of a setting that is no option of a command, such as TRAWL_ISA. The one door to the environment. */
export function environmentVariable(name: `TRAWL_${string}` | ForeignVariable): string | undefined {
  return process.env[name];
}

/**
 * Flags win over the environment, the environment over the configuration file, the file over the defaults.
 *
 * @throws TrawlError USAGE for the command line, CONFIG_INVALID for environment and file.
 */
export function resolveOptions<Table extends OptionTable>(
  table: Table,
  sources: OptionSources,
): ResolvedOptions<Table> {
  const env = sources.env ?? process.env;
  const { flags, positionals } = parseArguments(table, sources.argv, sources.command);
  const configFile = flags.get('config')?.at(-1) ?? env[environmentName('config')];
  const file = readConfigFile(table, sources, configFile);
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
      const texts = spec.kind === 'list' ? fromEnvironment.split(',') : [fromEnvironment];
      values[name] = optionValue(spec, texts, 'CONFIG_INVALID', variable);
    } else if (file.has(name)) values[name] = file.get(name);
    else
      values[name] =
        spec.kind === 'flag' ? (spec.default ?? false) : spec.kind === 'list' ? Object.freeze([]) : spec.default;
  }
  return { options: Object.freeze(values) as OptionValues<Table>, positionals, given };
}
