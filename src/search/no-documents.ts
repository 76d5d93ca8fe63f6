import type { PassageStore } from '../index/passages/passage-store.ts';

/** What a search needs of the passages to return its hits. */
export type Documents = Pick<PassageStore, 'getMany'>;

/** Reads nothing, for calls without documents: every document is empty. */
export const NO_DOCUMENTS: Documents = {
  getMany: async (rows) => new Array<string>(rows.length).fill(''),
};
