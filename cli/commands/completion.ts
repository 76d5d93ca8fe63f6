import { usageError } from '../../src/base/errors.ts';
import { defineCommand, EXIT } from '../program/command.ts';
import {
  bashCompletion,
  type CompletionCommand,
  completionCommands,
  fishCompletion,
  zshCompletion,
} from '../program/completion.ts';

const SHELLS: Readonly<Record<string, (commands: readonly CompletionCommand[]) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

export const completionCommand = defineCommand({
  name: 'completion',
  summary: 'print the completion script of a shell',
  description:
    'Prints a script with which the shell completes commands, options, their values and files. It contains all of them, so that ' +
    'completing does not start Trawl. Print it again after an update.',
  positionals: {
    usage: '<shell>',
    help: { shell: 'bash, zsh or fish.' },
    words: Object.keys(SHELLS),
  },
  options: {},
  examples: [
    'trawl completion bash > ~/.local/share/bash-completion/completions/trawl',
    'trawl completion zsh > ~/.zfunc/_trawl        # ~/.zfunc is in $fpath',
    'trawl completion fish > ~/.config/fish/completions/trawl.fish',
  ],
  async run({ positionals, out, program }) {
    const [shell] = positionals as [string];
    const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
    if (script === undefined)
      throw usageError(`Unknown shell ${shell}; expected one of ${Object.keys(SHELLS).join(', ')}.`);
    out(script(completionCommands(await program.commands())));
    return EXIT.ok;
  },
});
