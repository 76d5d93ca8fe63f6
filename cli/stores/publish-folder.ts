import { formatCount, formatNumberOf } from '../../src/base/format.ts';
import type { PublishProgress } from '../../src/stores/publish/publish-index.ts';
import { type PublishMilvusOptions, publishToMilvus } from '../../src/stores/publish/publish-milvus.ts';
import { type PublishOpenSearchOptions, publishToOpenSearch } from '../../src/stores/publish/publish-opensearch.ts';
import { withProgress } from '../output/progress/step-progress.ts';
import { type AnyContext, EXIT } from '../program/command.ts';

/** The part of the work that each step begins at; storing rows takes nearly all of it. */
const STEP_SHARES: Readonly<Record<PublishProgress['step'], readonly [number, number]>> = {
  'reading the passages': [0, 0.02],
  'storing rows': [0.02, 0.85],
  'storing files': [0.85, 0.88],
  indexing: [0.88, 0.95],
  loading: [0.95, 0.98],
  comparing: [0.98, 1],
};

/** Options of a publication without what this file adds. */
type Settings<Options> = Omit<Options, 'signal' | 'onProgress'>;
export type PublishSettings =
  | ({ readonly store: 'Milvus' } & Settings<PublishMilvusOptions>)
  | ({ readonly store: 'OpenSearch' } & Settings<PublishOpenSearchOptions>);

/** Publishes an index directory, shows the progress, and prints the report. Returns the exit code. */
export async function publishFolder(
  folder: string,
  address: string,
  settings: PublishSettings,
  { options, signal, out, note }: AnyContext,
): Promise<number> {
  const report = await withProgress(options, (show) => {
    const onProgress = ({ step, done, total }: PublishProgress): void => {
      const [from, to] = STEP_SHARES[step];
      const share = from + (to - from) * (total === 0 ? 1 : done / total);
      show({ step, share, facts: step === 'storing rows' ? `${formatCount(done)} of ${formatCount(total)}` : '' });
    };
    return settings.store === 'Milvus'
      ? publishToMilvus(folder, address, { ...settings, signal, onProgress })
      : publishToOpenSearch(folder, address, { ...settings, signal, onProgress });
  });
  if (options.json) {
    out(JSON.stringify(report));
    return EXIT.ok;
  }
  const { rows, questions, texts, same } = report.verified;
  const compared = `${formatNumberOf(rows, 'row')}, ${formatNumberOf(questions, 'question')}${texts === 0 ? '' : ` and ${formatNumberOf(texts, 'text')} for BM25`}`;
  // Only where the store's index is approximate; otherwise the first difference is an error.
  const found =
    same === questions || settings.store !== 'Milvus'
      ? 'all the same'
      : `${same} questions with the same hits (${settings.indexType} is approximate)`;
  note(`${compared} compared with the folder: ${found}`);
  if (report.alias !== null) note(`the alias ${report.alias} now names ${report.collection}`);
  out(`${report.address}: ${formatNumberOf(report.rows, 'passage')}${report.wasComplete ? ', published before' : ''}`);
  return EXIT.ok;
}
