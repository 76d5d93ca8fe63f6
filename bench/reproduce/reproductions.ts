import { ENCODERS } from './lists/encoders.ts';
import { QUALITY } from './lists/quality.ts';
import { REPORTS } from './lists/reports.ts';
import { SEARCH } from './lists/search.ts';
import { SERVERS } from './lists/servers.ts';
import type { Reproduction } from './reproduction.ts';

/** All recorded results that can be measured again. */
export const REPRODUCTIONS: readonly Reproduction[] = [...QUALITY, ...SEARCH, ...ENCODERS, ...SERVERS, ...REPORTS];
