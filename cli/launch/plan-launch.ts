import { quoteForShell } from '../../src/base/format.ts';
import { findCorpus, findModel, findVectors, indexFolderOf, isImported, wordIndexFolderOf } from './launch-files.ts';
import { type Bm25Line, type DenseLine, type LaunchLine, translateLaunchLine } from './launch-lines.ts';

/** The `trawl` commands that replace another server's command line. */
export interface LaunchPlan {
  /** Arguments of each command, to be run one after the other. */
  readonly steps: readonly (readonly string[])[];
  /** Sentences for the user. */
  readonly remarks: readonly string[];
}

/**
 * Plans a launch line on this machine: add its models and import its index unless they exist, then serve. With
 * `--retriever_name bm25`, make an index of words from the corpus instead; for a rerank server, only add the model and serve. A stopped import is
 * planned again and resumes.
 *
 * @throws TrawlError as translateLaunchLine and findModel do.
 */
export async function planLaunchLine(argv: readonly string[]): Promise<LaunchPlan> {
  const line = translateLaunchLine(argv);
  const { steps, remarks } = await planServer(line);
  if (line.rerankModel === undefined) return { steps, remarks };
  const { model, add } = await findModel(line.rerankModel);
  const [serve, ...options] = steps.at(-1)!;
  return {
    steps: [
      ...(add === undefined ? [] : [['model', 'add', add.source, '--name', add.name]]),
      ...steps.slice(0, -1),
      [serve!, `--rerank=${model}`, ...options],
    ],
    remarks,
  };
}

async function planServer(line: LaunchLine): Promise<LaunchPlan> {
  switch (line.mode) {
    case 'bm25':
      return planBm25(line);
    case 'dense':
      return planDense(line);
    case 'rerank':
      return { steps: [['serve', ...line.serveOptions]], remarks: line.remarks };
  }
}

function planBm25(line: Bm25Line): LaunchPlan {
  const { paths, remark } = findCorpus(line.corpus);
  const out = line.out ?? wordIndexFolderOf(line.corpus);
  const steps = [['serve', ...line.serveOptions, '--', out]];
  if (!isImported(out, paths)) steps.unshift(['index', '--bm25', '--out', out, '--overwrite', '--', ...paths]);
  return { steps, remarks: remark === undefined ? line.remarks : [...line.remarks, remark] };
}

async function planDense(line: DenseLine): Promise<LaunchPlan> {
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

/** A command as a user would type it in a shell. */
export function shownCommand([command, ...argv]: readonly string[]): string {
  return ['trawl', command, ...argv.map(quoteForShell)].join(' ');
}
