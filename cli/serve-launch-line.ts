import { findCorpus, findModel, findVectors, indexFolderOf, isImported } from './launch-files.ts';
import { translateLaunchLine } from './launch-lines.ts';

/** Commands of ours that together do what another server's command line does, to be run one after the other. */
export interface LaunchPlan {
  readonly steps: readonly (readonly string[])[];
  readonly remarks: readonly string[];
}

/**
 * Plans what a launch line needs on this machine: adding its model and importing its index where they are not there yet, and
 * serving. An import that was stopped is among the steps again, and goes on where it stopped.
 *
 * @throws TrawlError as translateLaunchLine and findModel.
 */
export async function planLaunchLine(argv: readonly string[]): Promise<LaunchPlan> {
  const line = translateLaunchLine(argv);
  const vectors = findVectors(line.vectors);
  const corpus = findCorpus(line.corpus);
  const { model, add, positions = line.maxQueryTokens } = await findModel(line.model);
  const out = line.out ?? indexFolderOf(line.vectors);
  const steps: string[][] = [];
  if (add !== undefined) steps.push(['model', 'add', add.source, '--name', add.name]);
  if (!isImported(out, [...vectors.paths, ...corpus.paths])) {
    const inputs = ['--corpus', corpus.paths[0]!, '--model', model, '--out', out, '--overwrite'];
    const limit = `--max-query-tokens=${Math.min(line.maxQueryTokens, positions)}`;
    steps.push(['import', ...inputs, ...line.importOptions, limit, '--', ...vectors.paths]);
  }
  steps.push(['serve', '--model', model, ...line.serveOptions, '--', out]);
  return { steps, remarks: [...line.remarks, ...[vectors.remark, corpus.remark].filter((each) => each !== undefined)] };
}

/** A command as a person would type it. */
export function shownCommand([command, ...argv]: readonly string[]): string {
  const quoted = argv.map((text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`));
  return ['trawl', command, ...quoted].join(' ');
}
