import { environmentName } from '../../src/base/options/option-spec.ts';
import type { Command } from './command.ts';
import { EXIT } from './command.ts';
import { optionText, optionUsage } from './help.ts';

/** The manual page trawl(1) in the macros of man(7), with every command and option. */
export function manPage(commands: readonly Command[], version: string): string {
  return [
    `.TH TRAWL 1 "" "trawl ${version}" "User Commands"`,
    '.SH NAME',
    'trawl \\- exact retrieval for search agents, dense and BM25',
    '.SH SYNOPSIS',
    '.B trawl',
    '.I command',
    '[\\fIoptions\\fR]',
    '.SH DESCRIPTION',
    ...paragraphs('Builds indexes of passages and serves them to search agents, by vectors, by BM25 or by both.'),
    '.SH COMMANDS',
    ...commands.flatMap(({ name, summary }) => ['.TP', `.B ${escaped(name)}`, line(summary)]),
    ...commands.flatMap(commandSection),
    '.SH ENVIRONMENT',
    ...paragraphs(
      `Every option can also be set by an environment variable (${environmentName('max-k')} for --max-k) or in trawl.config.json. ` +
        'The command line takes precedence over the environment, and the environment over the file.',
    ),
    '.SH EXIT STATUS',
    ...(
      [
        [EXIT.ok, 'done'],
        [EXIT.failed, 'the work failed; the message says why'],
        [EXIT.usage, 'a mistake on the command line'],
        [EXIT.problems, 'a check found problems'],
        [EXIT.resumable, 'stopped by SIGTERM; the same command resumes'],
        [EXIT.interrupted, 'interrupted'],
      ] as const
    ).flatMap(([code, meaning]) => ['.TP', `.B ${code}`, meaning]),
    '',
  ].join('\n');
}

function commandSection({ name, description, positionals, options, examples }: Command): string[] {
  return [
    `.SH TRAWL ${escaped(name.toUpperCase())}`,
    `.B trawl ${escaped(`${name} ${positionals.usage}`.trimEnd())}`,
    '[\\fIoptions\\fR]',
    ...paragraphs(description),
    ...Object.entries(positionals.help).flatMap(([argument, help]) => ['.TP', `.I ${escaped(argument)}`, line(help)]),
    ...Object.entries(options).flatMap(([option, spec]) => [
      '.TP',
      `.B ${escaped(optionUsage(option, spec))}`,
      line(optionText(option, spec)),
    ]),
    ...(examples.length === 0 ? [] : ['.PP', 'Examples:', '.PP', '.nf', ...examples.map(line), '.fi']),
  ];
}

function paragraphs(text: string): string[] {
  return text.split('\n\n').flatMap((paragraph) => ['.PP', line(paragraph)]);
}

/** One line of text: roff takes a dot or an apostrophe at its beginning for a request. */
function line(text: string): string {
  return escaped(text.replaceAll(/\s+/g, ' ')).replace(/^[.']/, '\\&$&');
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\e').replaceAll('-', '\\-');
}
