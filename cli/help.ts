import { environmentName, type OptionSpec } from '../src/options/option-spec.ts';
import type { Command } from './command.ts';
import { wrapParagraph } from './wrap.ts';

const WIDTH = 100;

/** The help of the whole program. */
export function programHelp(commands: readonly Command[], version: string): string {
  const width = Math.max(...commands.map((command) => command.name.length));
  return [
    `trawl ${version}: exact dense retrieval for search agents`,
    '',
    'Usage: trawl <command> [options]',
    '',
    ...commands.map((command) => `  ${command.name.padEnd(width)}  ${command.summary}`),
    '',
    '`trawl <command> --help` tells more. Every option can also be set by an environment variable (--max-k: TRAWL_MAX_K)',
    'or in trawl.config.json; a flag wins over the environment, the environment over the file.',
    '',
    'Exit codes: 0 done, 1 failed, 2 command line not understood, 3 a check found problems, 75 stopped by SIGTERM and',
    'resumed by the same command, 130 interrupted.',
  ].join('\n');
}

/** The help of one command. */
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

function optionUsage(name: string, spec: OptionSpec): string {
  switch (spec.kind) {
    case 'flag':
      return spec.default === true ? `--no-${name}` : `--${name}`;
    case 'choice':
      return `--${name} ${spec.choices.join('|')}`;
    case 'list':
      return `--${name} ${spec.value ?? 'TEXT'} (may be repeated)`;
    default:
      return `--${name} ${spec.value ?? (spec.kind === 'integer' ? 'N' : 'TEXT')}`;
  }
}

function optionText(name: string, spec: OptionSpec): string {
  const fallback =
    spec.kind === 'list' || spec.kind === 'flag' || spec.default === undefined ? '' : ` Default: ${spec.default}.`;
  return `${spec.help}${fallback} [${environmentName(name)}]`;
}

/** Paragraphs (separated by a blank line) broken into lines. */
function wrap(text: string, indent: number): string[] {
  return text
    .split('\n\n')
    .flatMap((paragraph, i) => [...(i === 0 ? [] : ['']), ...wrapParagraph(paragraph, { indent, width: WIDTH })]);
}
