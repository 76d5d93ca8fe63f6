import { formatTable, wrapParagraph } from '../../src/base/format.ts';
import { environmentName, type OptionSpec } from '../../src/base/options/option-spec.ts';
import type { Command } from './command.ts';

const WIDTH = 100;

/** The output of `trawl --help`. */
export function programHelp(commands: readonly Command[], version: string): string {
  return [
    `trawl ${version}: exact retrieval for search agents, dense and BM25`,
    '',
    'Usage: trawl <command> [options]',
    '',
    ...formatTable(
      commands.map(({ name, summary }) => [`  ${name}`, summary]),
      { allLeft: true },
    ),
    '',
    '`trawl <command> --help` explains a command. Every option can also be set by an environment variable',
    '(TRAWL_MAX_K for --max-k) or in trawl.config.json. The command line takes precedence over the',
    'environment, and the environment over the file.',
    '',
    'Exit codes: 0 done, 1 failed, 2 mistake on the command line, 3 a check found problems, 75 stopped by',
    'SIGTERM (the same command resumes), 130 interrupted.',
  ].join('\n');
}

/** The output of `trawl <command> --help`. */
export function commandHelp(command: Command): string {
  const lines = [
    `${`Usage: trawl ${command.name} ${command.positionals.usage}`.trimEnd()} [options]`,
    '',
    ...wrap(command.description, 0),
  ];
  const positionals = Object.entries(command.positionals.help);
  if (positionals.length > 0) {
    lines.push('', 'Arguments:');
    for (const [name, help] of positionals) lines.push(`  ${name}`, ...wrap(help, 6));
  }
  lines.push('', 'Options:');
  for (const [name, spec] of Object.entries(command.options))
    lines.push(`  ${optionUsage(name, spec)}`, ...wrap(optionText(name, spec), 6));
  if (command.examples.length > 0) lines.push('', 'Examples:', ...command.examples.map((example) => `  ${example}`));
  return lines.join('\n');
}

/** `--out DIR`, `--quiet`. */
export function optionUsage(name: string, spec: OptionSpec): string {
  switch (spec.type) {
    case 'flag':
      return spec.default === true ? `--no-${name}` : `--${name}`;
    case 'choice':
      return `--${name} ${spec.value ?? spec.choices.join('|')}`;
    case 'list':
      return `--${name} ${spec.value ?? 'TEXT'} (may be repeated)`;
    default:
      return `--${name} ${spec.value ?? (spec.type === 'integer' ? 'N' : 'TEXT')}`;
  }
}

/** The help with the default and the environment variable. */
export function optionText(name: string, spec: OptionSpec): string {
  const fallback =
    spec.type === 'list' || spec.type === 'flag' || spec.default === undefined ? '' : ` Default: ${spec.default}.`;
  return `${spec.help}${fallback} [${environmentName(name)}]`;
}

/** Wraps paragraphs, which are separated by a blank line. */
function wrap(text: string, indent: number): string[] {
  return text
    .split('\n\n')
    .flatMap((paragraph, i) => [...(i === 0 ? [] : ['']), ...wrapParagraph(paragraph, { indent, width: WIDTH })]);
}
