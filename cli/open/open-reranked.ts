import { usageError } from '../../src/base/errors.ts';
import { EncoderPools } from '../../src/encoder/pool/encoder-pools.ts';
import { GroupRetriever } from '../../src/search/group/group-retriever.ts';
import { narrowedRetriever } from '../../src/search/layers/passing-retriever.ts';
import type { OpenRetrieverOptions } from '../../src/search/opening/open-retriever.ts';
import type { OpenRetriever, Retriever } from '../../src/search/retriever.ts';
import { openIndex } from '../../src/stores/open-index.ts';
import * as option from '../options/option.ts';
import { openReranker, type RerankOptions } from '../options/rerank-options.ts';
import { type ViewOptions, viewOption } from '../options/view-options.ts';
import { parseServedIndexes } from '../serve/served-indexes.ts';

/** Of commands that search one index or several. */
export const FURTHER_INDEX_OPTION = option.list(
  '[NAME=]DIR',
  'A further index directory, searched together with the first: the lists are merged by score where scores are comparable, else by rank (docs/http-api.md). Repeat the option for several.',
);

/**
 * Opens an index with the reranker of `--rerank`, if any, limited to the view of `--view`, if any; with `further` indexes, a group of
 * all of them. `close` closes everything.
 *
 * @throws TrawlError USAGE for two indexes of one name, and the errors of `viewOption`, of `openCrossEncoder` and of `openIndex`;
 * nothing stays open then.
 */
export async function openReranked(
  folder: string,
  options: RerankOptions & ViewOptions,
  retrieving: OpenRetrieverOptions,
  further: readonly string[] = [],
): Promise<{ readonly retriever: Retriever; close(): Promise<void> }> {
  const indexes = further.length === 0 ? [] : parseServedIndexes([folder, ...further]);
  const repeated = indexes.find(({ name }, i) => indexes.findIndex((other) => other.name === name) < i);
  if (repeated !== undefined) {
    throw usageError(`Two indexes have the name ${repeated.name}. Choose another name for one: --index NAME=DIR.`);
  }
  const view = viewOption(options);
  const views = view === undefined ? [] : [view];
  const reranker = await openReranker(options);
  const opened: OpenRetriever[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(opened.map((retriever) => retriever.close()));
    await reranker?.close();
  };
  try {
    const each = { ...retrieving, views, reranker, maxRerankTokens: options['rerank-max-tokens'] };
    if (indexes.length === 0) opened.push(await openIndex(folder, each));
    const shared = { encoderPools: new EncoderPools(), answersSince: performance.now() };
    for (const index of indexes) opened.push(await openIndex(index.folder, { ...each, ...shared, name: index.name }));
    const retriever: Retriever =
      opened.length === 1 ? opened[0]! : new GroupRetriever(indexes.map(({ name }) => name).join(','), opened);
    return { retriever: narrowedRetriever(retriever, { views: views.map(({ name }) => name) }), close };
  } catch (error) {
    await close();
    throw error;
  }
}
