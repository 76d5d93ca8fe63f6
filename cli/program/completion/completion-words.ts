import type { OptionSpec } from '../../../src/base/options/option-spec.ts';
import { COMMON_OPTIONS, type Command } from '../command.ts';

/** What a shell needs to complete one option. */
export interface CompletionOption {
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
    options: Object.entries({ ...command.options, ...COMMON_OPTIONS })
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
