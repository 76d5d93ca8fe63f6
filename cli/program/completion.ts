import type { OptionSpec } from '../../src/base/options/option-spec.ts';
import { lines } from '../output/lines.ts';
import type { Command } from './command.ts';

/** What a shell needs to complete one option. */
interface CompletionOption {
  readonly name: string;
  /** The first sentence of its help. */
  readonly summary: string;
  /** What follows: nothing, one of these words, a file or folder, or any text. */
  readonly value: 'none' | 'path' | 'text' | readonly string[];
}

export interface CompletionCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly CompletionOption[];
  /** Words that may be the first argument, such as the actions of `trawl model`. */
  readonly words: readonly string[];
}

/** The placeholders of values that are paths on this machine. */
const PATH_VALUE = /DIR|FILE|FOLDER|PATH|BUNDLE|MODEL/;

/** What the shells complete, from the option tables that parse the command line. */
export function completionCommands(commands: readonly Command[]): CompletionCommand[] {
  return commands.map((command) => ({
    name: command.name,
    summary: command.summary,
    options: Object.entries(command.options)
      .map(([name, spec]) => optionOf(name, spec))
      .concat({ name: 'help', summary: 'Explain the command.', value: 'none' }),
    words: command.positionals.words ?? [],
  }));
}

function optionOf(name: string, spec: OptionSpec): CompletionOption {
  const summary = /^.*?[.:](?=\s|$)/.exec(spec.help)?.[0].slice(0, -1) ?? spec.help;
  if (spec.type === 'flag') return { name: spec.default === true ? `no-${name}` : name, summary, value: 'none' };
  if (spec.type === 'choice') return { name, summary, value: spec.choices };
  const isPath = spec.type !== 'integer' && PATH_VALUE.test(spec.value ?? '');
  return { name, summary, value: isPath ? 'path' : 'text' };
}

/** A script for bash: `eval "$(trawl completion bash)"`. */
export function bashCompletion(commands: readonly CompletionCommand[]): string {
  return [
    '# bash completion of trawl, made by `trawl completion bash`',
    '_trawl_files() {',
    // Names may have spaces. The bash of macOS has no compopt.
    "  local IFS=$'\\n'",
    '  compopt -o filenames 2>/dev/null',
    '  COMPREPLY=($(compgen -f -- "$word"))',
    '}',
    '_trawl() {',
    // Without bash-completion's helpers; "=" is among the separators, so `--name=value` is completed as `--name value`.
    `  local word=${wordAt('COMP_CWORD')} before=${wordAt('COMP_CWORD-1')} command=${wordAt('1')}`,
    '  local options= words= values=',
    '  [ "$word" = "=" ] && word=',
    `  [ "$before" = "=" ] && before=${wordAt('COMP_CWORD-2')}`,
    '  COMPREPLY=()',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    COMPREPLY=($(compgen -W '${[...commands.map(({ name }) => name), 'help', '--help', '--version'].join(' ')}' -- "$word"))`,
    '    return',
    '  fi',
    '  case $command in',
    ...commands.flatMap(bashCommand),
    `    help) words='${commands.map(({ name }) => name).join(' ')}' ;;`,
    '    *) return ;;',
    '  esac',
    '  if [ -n "$values" ]; then',
    '    case $values in',
    '      path) _trawl_files ;;',
    '      text) ;;',
    '      *) COMPREPLY=($(compgen -W "$values" -- "$word")) ;;',
    '    esac',
    '    return',
    '  fi',
    '  case $word in',
    '    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;',
    '    *)',
    '      if [ "$COMP_CWORD" -eq 2 ] && [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$word"))',
    '      else _trawl_files; fi',
    '      ;;',
    '  esac',
    '}',
    'complete -F _trawl trawl',
  ].join('\n');
}

function bashCommand({ name, options, words }: CompletionCommand): string[] {
  const valued = options.filter(({ value }) => value !== 'none');
  return [
    `    ${name})`,
    `      options='${options.map((option) => `--${option.name}`).join(' ')}'`,
    ...(words.length === 0 ? [] : [`      words='${words.join(' ')}'`]),
    '      case $before in',
    ...valued.map((option) => `        --${option.name}) values='${valueWords(option)}' ;;`),
    '      esac',
    '      ;;',
  ];
}

/** A word of the command line that is completed, as the shell names it. */
function wordAt(place: string): string {
  return `\${COMP_WORDS[${place}]}`;
}

function valueWords({ value }: CompletionOption): string {
  return typeof value === 'string' ? value : value.join(' ');
}

/** A script for fish: `trawl completion fish > ~/.config/fish/completions/trawl.fish`. */
export function fishCompletion(commands: readonly CompletionCommand[]): string {
  const names = commands.map(({ name }) => name).join(' ');
  return [
    '# fish completion of trawl, made by `trawl completion fish`',
    'complete -c trawl -e',
    ...commands.map(
      ({ name, summary }) => `complete -c trawl -n __fish_use_subcommand -f -a ${name} -d ${fishQuoted(summary)}`,
    ),
    'complete -c trawl -n __fish_use_subcommand -f -l version -d "Print the version."',
    `complete -c trawl -n '__fish_seen_subcommand_from help' -f -a '${names}'`,
    ...commands.flatMap(fishCommand),
  ].join('\n');
}

function fishCommand({ name, options, words }: CompletionCommand): string[] {
  const start = `complete -c trawl -n '__fish_seen_subcommand_from ${name}'`;
  const list = words.join(' ');
  return lines(
    list !== '' &&
      `complete -c trawl -n '__fish_seen_subcommand_from ${name}; and not __fish_seen_subcommand_from ${list}' -f -a '${list}'`,
    ...options.map((option) => `${start} -l ${option.name}${valueFlags(option)} -d ${fishQuoted(option.summary)}`),
  );
}

function valueFlags({ value }: CompletionOption): string {
  if (value === 'none') return '';
  if (value === 'path') return ' -r -F';
  return value === 'text' ? ' -x' : ` -x -a '${value.join(' ')}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, '\\$&')}'`;
}

/** A script for zsh: a file `_trawl` in a folder of `$fpath`, or `eval "$(trawl completion zsh)"` after compinit. */
export function zshCompletion(commands: readonly CompletionCommand[]): string {
  return [
    '#compdef trawl',
    '# zsh completion of trawl, made by `trawl completion zsh`',
    '_trawl() {',
    '  local -a commands',
    '  commands=(',
    ...commands.map(({ name, summary }) => `    ${zshQuoted(`${name}:${summary}`)}`),
    '  )',
    '  if (( CURRENT == 2 )); then',
    "    _describe 'command' commands",
    '    return',
    '  fi',
    '  shift words',
    '  (( CURRENT-- ))',
    '  case $words[1] in',
    ...commands.flatMap(zshCommand),
    "    help) _describe 'command' commands ;;",
    '  esac',
    '}',
    'if [ "$funcstack[1]" = _trawl ]; then _trawl "$@"; else compdef _trawl trawl; fi',
  ].join('\n');
}

function zshCommand({ name, options, words }: CompletionCommand): string[] {
  const first = words.length === 0 ? '' : ` ${zshQuoted(`1:action:(${words.join(' ')})`)}`;
  return [
    `    ${name})`,
    `      _arguments -S${first} '*:file:_files' \\`,
    ...options.map((option, i) => `        ${zshOption(option)}${i === options.length - 1 ? '' : ' \\'}`),
    '      ;;',
  ];
}

function zshOption({ name, summary, value }: CompletionOption): string {
  const text = `*--${name}${value === 'none' ? '' : '='}[${summary.replaceAll(/[[\]\\]/g, '\\$&')}]`;
  if (value === 'none') return zshQuoted(text);
  if (value === 'path') return zshQuoted(`${text}:path:_files`);
  return zshQuoted(value === 'text' ? `${text}:value: ` : `${text}:value:(${value.join(' ')})`);
}

function zshQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
