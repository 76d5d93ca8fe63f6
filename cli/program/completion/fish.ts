import type { CompletionCommand, CompletionOption } from './completion-words.ts';

/** A script for fish: `trawl completion fish > ~/.config/fish/completions/trawl.fish`. */
export function fishCompletion(commands: readonly CompletionCommand[]): string {
  const names = commands.map(({ name }) => name).join(' ');
  return [
    '# fish completion of trawl, made by `trawl completion fish`',
    'complete -c trawl -e',
    ...commands.map(
      ({ name, summary }) => `complete -c trawl -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
    ),
    'complete -c trawl -n __fish_use_subcommand -f -l version -d "Print the version."',
    `complete -c trawl -n '__fish_seen_subcommand_from help' -f -a '${names}'`,
    ...commands.flatMap(commandLines),
  ].join('\n');
}

function commandLines({ name, options, words }: CompletionCommand): string[] {
  const start = `complete -c trawl -n '__fish_seen_subcommand_from ${name}'`;
  const first =
    words.length === 0
      ? []
      : [
          `complete -c trawl -n '__fish_seen_subcommand_from ${name}; and not __fish_seen_subcommand_from ${words.join(' ')}' -f -a '${words.join(' ')}'`,
        ];
  return [
    ...first,
    ...options.map((option) => `${start} -l ${option.name}${valueFlags(option)} -d ${quoted(option.summary)}`),
  ];
}

function valueFlags({ value }: CompletionOption): string {
  if (value === 'none') return '';
  if (value === 'path') return ' -r -F';
  return value === 'text' ? ' -x' : ` -x -a '${value.join(' ')}'`;
}

function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, '\\$&')}'`;
}
