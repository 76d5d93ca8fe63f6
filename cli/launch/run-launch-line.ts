import { asTrawlError, usageError } from '../../src/base/errors.ts';
import { EXIT } from '../program/command.ts';
import { loadCommand } from '../program/commands.ts';
import { report, resolveCall, runCommand } from '../program/run-command.ts';
import { planLaunchLine, shownCommand } from './plan-launch.ts';

/** Runs the commands that replace another retrieval server's command line: add the model, import, and serve. */
export async function runLaunchLine(argv: readonly string[], json: boolean): Promise<number> {
  const quiet = argv.includes('--quiet');
  const note = (text: string): void => void (quiet || process.stderr.write(`${text}\n`));
  try {
    let { steps, remarks, onMade } = await planLaunchLine(argv, note);
    await checkOptions(steps.at(-1)!);
    for (const remark of remarks) note(remark);
    while (steps.length > 0) {
      const [step, ...others] = steps as [string[], ...string[][]];
      note(shownCommand(step));
      // Prints the results of all steps but the last as notes, because the user started a server.
      const last = others.length === 0;
      const [name, ...rest] = step as [string, ...string[]];
      const flags = [...(last ? [] : ['--no-json']), ...(quiet ? ['--quiet'] : [])];
      const streams = { jsonErrors: json, ...(last ? {} : { out: note }) };
      const code = await runCommand((await loadCommand(name))!, [...flags, ...rest], streams);
      if (code !== EXIT.ok) return code;
      if (name === 'import' || name === 'index') onMade?.();
      // Plans again: the import needs the token limit of the added model.
      if (name === 'model') ({ steps, onMade } = await planLaunchLine(argv, note));
      else steps = others;
    }
    return EXIT.ok;
  } catch (error) {
    const known = asTrawlError(error);
    report(known, json);
    return known.code === 'USAGE' ? EXIT.usage : EXIT.failed;
  }
}

/** Reports a misspelt option, or a missing index, before a model is downloaded or millions of vectors are read. */
async function checkOptions([name, ...argv]: readonly string[]): Promise<void> {
  const { positionals } = resolveCall((await loadCommand(name!))!, argv);
  if (positionals.length > 0) return;
  throw usageError(
    '<index> is missing: Trawl reranks beside an index, of any content. Add the folder of one, such as indexes/sample.',
  );
}
