import { quoteForShell } from '../../src/base/format.ts';
import {
  findCorpus,
  findModel,
  findVectors,
  indexFolderOf,
  isImported,
  launchSources,
  recordSources,
  sourceStates,
  wordIndexFolderOf,
} from './launch-files.ts';
import { type Bm25Line, type DenseLine, type LaunchLine, translateLaunchLine } from './launch-lines.ts';

/** The `trawl` commands that replace another server's command line. */
export interface LaunchPlan {
  /** Arguments of each command, to be run one after the other. */
  readonly steps: readonly (readonly string[])[];
  /** To be called when the index was made by the steps. */
  readonly onMade?: () => void;
  /** Sentences for the user. */
  readonly remarks: readonly string[];
}

type Note = (text: string) => void;

/**
 * Plans a launch line on this machine: add its models and import its index unless they exist, then serve. With
 * `--retriever_name bm25`, make an index of words from the corpus instead; for a rerank server, only add the model and serve. A stopped import is
 * planned again and resumes.
 *
 * @throws TrawlError as translateLaunchLine and findModel do.
 */
export async function planLaunchLine(argv: readonly string[], note?: Note): Promise<LaunchPlan> {
  const line = translateLaunchLine(argv);
  const plan = await planServer(line, note);
  if (line.rerankModel === undefined) return plan;
  const { steps } = plan;
  const { model, add } = await findModel(line.rerankModel);
  const [serve, ...options] = steps.at(-1)!;
  return {
    ...plan,
    steps: [
      ...(add === undefined ? [] : [['model', 'add', add.source, '--name', add.name]]),
      ...steps.slice(0, -1),
      [serve!, `--rerank=${model}`, ...options],
    ],
  };
}

async function planServer(line: LaunchLine, note?: Note): Promise<LaunchPlan> {
  switch (line.mode) {
    case 'bm25':
      return planBm25(line, note);
    case 'dense':
      return planDense(line, note);
    case 'rerank':
      return { steps: [['serve', ...line.serveOptions]], remarks: line.remarks };
  }
}

async function planBm25(line: Bm25Line, note?: Note): Promise<LaunchPlan> {
  const { paths, remark } = findCorpus(line.corpus);
  const out = line.out ?? wordIndexFolderOf(line.corpus);
  const steps = [['serve', ...line.serveOptions, '--', out]];
  const sources = launchSources(paths);
  const states = sourceStates(sources);
  if (!(await isImported(out, sources, note)))
    steps.unshift(['index', '--bm25', '--out', out, '--overwrite', '--', ...paths]);
  const remarks = remark === undefined ? line.remarks : [...line.remarks, remark];
  return { steps, remarks, onMade: () => recordSources(out, states) };
}

async function planDense(line: DenseLine, note?: Note): Promise<LaunchPlan> {
  const vectors = findVectors(line.vectors);
  const corpus = findCorpus(line.corpus);
  const { model, add, positions = line.maxQueryTokens } = await findModel(line.model);
  const out = line.out ?? indexFolderOf(line.vectors);
  const steps: string[][] = [];
  if (add !== undefined) steps.push(['model', 'add', add.source, '--name', add.name]);
  const sources = launchSources(corpus.paths, vectors.paths);
  const states = sourceStates(sources);
  if (!(await isImported(out, sources, note))) {
    const inputs = ['--corpus', corpus.paths[0]!, '--model', model, '--out', out, '--overwrite'];
    const limit = `--max-query-tokens=${Math.min(line.maxQueryTokens, positions)}`;
    steps.push(['import', ...inputs, ...line.importOptions, limit, '--', ...vectors.paths]);
  }
  steps.push(['serve', '--model', model, ...line.serveOptions, '--', out]);
  const remarks = [...line.remarks, ...[vectors.remark, corpus.remark].filter((each) => each !== undefined)];
  return { steps, remarks, onMade: () => recordSources(out, states) };
}

/** A command as a user would type it in a shell. */
export function shownCommand([command, ...argv]: readonly string[]): string {
  return ['trawl', command, ...argv.map(quoteForShell)].join(' ');
}
