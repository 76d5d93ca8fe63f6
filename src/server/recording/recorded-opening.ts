import type { QueryOrigin } from './query-origin.ts';

/** A passage that a client read. */
interface OpenedPassage {
  /** In a group: the row in the index `index`. */
  readonly row: number;
  readonly index?: string;
  /** Its id as JSON text, with all its digits; undefined for a passage without one. */
  readonly idJson: string | undefined;
}

/** A client opened a passage or a page: it asked for it by its name, and did not search. */
export interface RecordedOpening {
  /** What the client asked for: an id, a URL, a title, or `row N`. */
  readonly opened: string;
  /** The passages of the reply, in its order; empty if nothing has that name. */
  readonly passages: readonly OpenedPassage[];
  readonly origin?: QueryOrigin;
}

/** The lines of a request's openings, each with its line end. `training/records/recorded-opening.ts` reads them. */
export function* openingLines(time: string, request: object, openings: readonly RecordedOpening[]): Generator<string> {
  for (const [place, { opened, passages, origin = {} }] of openings.entries()) {
    const isGroup = passages.some(({ index }) => index !== undefined);
    const line = {
      time,
      ...request,
      place,
      ...origin,
      opened,
      ...(isGroup ? { indexes: passages.map(({ index }) => index) } : {}),
      rows: passages.map(({ row }) => row),
    };
    const ids = passages.map(({ idJson }) => idJson ?? 'null').join(',');
    yield `${JSON.stringify(line).slice(0, -1)},"ids":[${ids}]}\n`;
  }
}
