import type { DialectClient } from '../dialect-client.ts';
import { idText, list, member, rowPassage } from '../reply-fields.ts';

/** BrowseComp-Plus's client in Search-R1's manner: one query without a count; `--topk` of the server says how many documents it gets. */
export const browseCompPlusClient: DialectClient = {
  name: 'browsecomp-plus',
  path: '/retrieve',
  batch: false,
  request: ([query]) => ({ query }),
  lists: (reply) => [
    list(reply, 'result').map((hit) => ({ ...rowPassage(member(hit, 'document')), id: idText(member(hit, 'docid')) })),
  ],
};
