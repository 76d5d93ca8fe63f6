import { formatCount, formatNumberOf } from '../../src/base/format.ts';
import type { OptionTable } from '../../src/base/options/option-spec.ts';
import type { PublishProgress } from '../../src/stores/publish/publish-index.ts';
import { type PublishMilvusOptions, publishToMilvus } from '../../src/stores/publish/publish-milvus.ts';
import { type PublishOpenSearchOptions, publishToOpenSearch } from '../../src/stores/publish/publish-opensearch.ts';
import { stepProgress } from '../output/progress/step-progress.ts';
import { type CommandContext, EXIT } from '../program/command.ts';

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
  {
    quiet,
    json,
    signal,
    out,
    note,
  }: { readonly quiet: boolean; readonly json: boolean } & Pick<CommandContext<OptionTable>, 'signal' | 'out' | 'note'>,
): Promise<number> {
  const progress = stepProgress({ silent: quiet || json });
  try {
    const running = {
      signal,
      onProgress: ({ step, done, total }: PublishProgress) => {
        const [from, to] = STEP_SHARES[step];
        const share = total === 0 ? 1 : done / total;
        progress.update({
          step,
          share: from + (to - from) * share,
          facts: step === 'storing rows' ? `${formatCount(done)} of ${formatCount(total)}` : '',
        });
      },
    };
    const report =
      settings.store === 'Milvus'
        ? await publishToMilvus(folder, address, { ...settings, ...running })
        : await publishToOpenSearch(folder, address, { ...settings, ...running });
    progress.stop();
    if (json) {
      out(JSON.stringify(report));
      return EXIT.ok;
    }
    const { rows, questions, texts, same } = report.verified;
    note(
      `${formatNumberOf(rows, 'row')}, ${formatNumberOf(questions, 'question')}${texts === 0 ? '' : ` and ${formatNumberOf(texts, 'text')} for BM25`} compared with the folder: ${
        // Only where the store's index is approximate; otherwise the first difference is an error.
        same === questions || settings.store !== 'Milvus'
          ? 'all the same'
          : `${same} questions with the same hits (${settings.indexType} is approximate)`
      }`,
    );
    if (report.alias !== null) note(`the alias ${report.alias} now names ${report.collection}`);
    out(
      `${report.address}: ${formatNumberOf(report.rows, 'passage')}${report.wasComplete ? ', published before' : ''}`,
    );
    return EXIT.ok;
  } finally {
    progress.stop();
  }
}
