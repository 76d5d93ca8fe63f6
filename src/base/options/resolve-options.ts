import { parseArgs } from 'node:util';
import { usageError } from '../errors.ts';
import { suggestOption } from './closest.ts';
import { readConfigFile } from './config-file.ts';
import { environmentName, type OptionTable, type OptionValues, optionOf, optionValue } from './option-spec.ts';

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
    const fromEnvironment = env[variable] || undefined;
    if (fromFlag !== undefined) values[name] = optionValue(spec, fromFlag, 'USAGE', `--${name}`);
    else if (fromEnvironment !== undefined) {
      const texts = spec.type === 'list' ? fromEnvironment.split(',') : [fromEnvironment];
      values[name] = optionValue(spec, texts, 'CONFIG_INVALID', variable);
    } else if (file.has(name)) values[name] = file.get(name);
    else {
      const noDefault = spec.type === 'flag' ? false : undefined;
      values[name] = spec.type === 'list' ? Object.freeze([]) : (spec.default ?? noDefault);
      continue;
    }
    given.add(name);
  }
  return { options: Object.freeze(values) as OptionValues<Table>, positionals, given };
}

interface ParsedArguments {
  /** The values of each given option, in order; 'true' or 'false' for a flag. */
  readonly flags: ReadonlyMap<string, readonly string[]>;
  readonly positionals: readonly string[];
}

/**
 * Splits a command line into options (`--name value`, `--name=value`, `--flag`, `--no-flag`) and positional arguments.
 * Everything after `--` is positional.
 *
 * @throws TrawlError USAGE.
 */
function parseArguments(table: OptionTable, argv: readonly string[], command: string): ParsedArguments {
  const names = namesOf(table);
  const { tokens, positionals } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      Array.from(names, ([name, { isFlag }]) => [name, { type: isFlag ? 'boolean' : 'string' }]),
    ),
    allowPositionals: true,
    // Unknown options and missing values are reported below, with what was probably meant.
    strict: false,
    tokens: true,
  });
  const flags = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, rawName, value, inlineValue } = token;
    if (!rawName.startsWith('--')) {
      throw usageError(
        `Unknown option ${argv[token.index]}. Options begin with two dashes (see \`trawl ${command} --help\`); an argument that ` +
          'begins with a dash goes after --.',
      );
    }
    const known = names.get(name);
    if (known === undefined) {
      // Of --=x the name has the value too.
      const unknown = name.replace(/=.*$/s, '');
      const near = suggestOption(unknown, [...names.keys()]);
      throw usageError(
        `Unknown option --${unknown}${near === undefined ? '.' : `; did you mean --${near}?`} See \`trawl ${command} --help\`.`,
      );
    }
    if (known.isFlag && value !== undefined) {
      throw usageError(`--${name} takes no value; --no-${name} switches it off.`);
    }
    if (!known.isFlag && value === undefined) throw usageError(`--${name} needs a value.`);
    // In `--out --json`, the user probably forgot the folder.
    if (inlineValue === false && value.startsWith('--')) {
      throw usageError(
        `--${name} needs a value, but ${value} follows. Write a value that begins with dashes as --${name}=${value}.`,
      );
    }
    flags.set(known.option, [...(flags.get(known.option) ?? []), value ?? String(known.option === name)]);
  }
  return { flags, positionals };
}

/** Every name that may follow `--`, negated flags included, with the option that it sets. */
function namesOf(table: OptionTable): Map<string, { readonly option: string; readonly isFlag: boolean }> {
  const names = Object.entries(table).map(
    ([option, { type }]) => [option, { option, isFlag: type === 'flag' }] as const,
  );
  const negated = names.filter(([name, { isFlag }]) => isFlag && optionOf(table, `no-${name}`) === undefined);
  return new Map([...names, ...negated.map(([name, known]) => [`no-${name}`, known] as const)]);
}
