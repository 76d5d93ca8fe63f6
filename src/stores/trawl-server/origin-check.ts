import { TrawlError } from '../../base/errors.ts';
import { hasOtherHits } from '../../search/calls/query-outcome.ts';
import type { SearchSourceInfo } from '../../search/retriever.ts';
import type { ReplyIndex, SearchResult, ServerFacts } from './native-replies.ts';

/** @throws TrawlError INDEX_CHANGED unless a reply comes from the same index, generation and views as the first one. */
export function checkOrigin(
  { info, server }: { readonly info: SearchSourceInfo; readonly server: ServerFacts },
  { index, view = null }: { readonly index?: ReplyIndex; readonly view?: string | null },
  state: string | null,
): void {
  const { url, view: within } = server;
  if (index?.generation !== info.generation || index.name !== info.index) throw changed(url, info.generation, index);
  if (view !== within) {
    throw new TrawlError(
      'INDEX_CHANGED',
      `${url} answers within the view ${view ?? '(none)'}; at the beginning it was ${within ?? '(none)'}. ` +
        'Use the same API key and view, or begin again with --restart.',
    );
  }
  checkState(server, state);
}

/** @throws TrawlError INDEX_CHANGED if the server has another version, encoder, reranker, filter, or other passages in its views. */
export function checkState(server: ServerFacts, state: string | null): void {
  if (state === server.state) return;
  throw new TrawlError(
    'INDEX_CHANGED',
    `${server.url} now has another version of Trawl, encoder, reranker or filter, or other passages in a view ` +
      `(x-trawl-state: ${state ?? 'none'}; at the beginning ${server.state ?? 'none'}). ` +
      'Start the server as before and repeat the command, or begin again with --restart.',
  );
}

export function changed(url: string, before: string, now: ReplyIndex | undefined): TrawlError {
  const found = now === undefined ? 'another server' : `the generation ${now.generation} of the index ${now.name}`;
  return new TrawlError(
    'INDEX_CHANGED',
    `${url} now answers from ${found}, and this run began with the generation ${before}: hits of both are not mixed. ` +
      'Load the former index on the server again and repeat the command, or begin again with --restart.',
    { details: { before, now: now?.generation ?? null } },
  );
}

/** The error for hits that the index may not give. A replayed search has null as its number of rescored rows. */
export function notOfIndex(url: string, { perturbed, certificate }: Extract<SearchResult, { ok: true }>): TrawlError {
  if (!hasOtherHits(perturbed) && certificate.rescored !== null) {
    return new TrawlError(
      'NOT_SUPPORTED',
      `${url} does not prove its hits (\`exact\` is false): it searches an approximate index in Milvus, which may miss some. Ask a server ` +
        'of the index in a folder, or published with `--index-type FLAT`.',
    );
  }
  return new TrawlError(
    'NOT_SUPPORTED',
    `${url} answers with hits that its index would not give: it was started with --perturb or --replay. Ask a server, or an address ` +
      'of it, without them.',
  );
}
