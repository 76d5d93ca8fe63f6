import { cp, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expectedAnswers, soakQueries } from '../soak/expected-answers.ts';
import { retrieveRequests } from '../soak/good-client.ts';
import { Faults, post, type Trial, underLoad } from './trial.ts';

const QUERIES = 400;
const AWAY_MS = 500;

/** Renames a copy of the index, so that a killed run does not leave the user's index under another name. */
export const renamedFolder: Trial = {
  name: "the index's folder renamed under load, and renamed back",
  async run(options) {
    const folder = join(options.folder, 'renamed');
    const away = `${folder}-away`;
    await cp(options.index, folder, { recursive: true });
    const queries = await soakQueries(QUERIES);
    return underLoad(folder, options, {
      queries,
      makeRequest: retrieveRequests(await expectedAnswers(options.index, queries)),
      async during(server, stopped) {
        const faults = new Faults();
        const reload = `${server.url}/admin/indexes/renamed/reload`;
        let renames = 0;
        let refused = 0;
        let reloaded = 0;
        while (!stopped()) {
          await rename(folder, away);
          renames++;
          const { status, text } = await post(reload);
          if (status === 409 && /"RELOAD_FAILED"/.test(text) && /INDEX_NOT_FOUND/.test(text)) refused++;
          else faults.add(`the reload of the missing folder was answered with ${status} ${text}`);
          if (text.includes(options.folder)) faults.add('a refusal contains a path');
          const ready = await fetch(`${server.url}/readyz`);
          await ready.arrayBuffer();
          if (ready.status !== 200) faults.add(`/readyz was ${ready.status}`);
          await sleep(AWAY_MS);
          await rename(away, folder);
          const back = await post(reload);
          if (back.status === 200) reloaded++;
          else faults.add(`the reload of the restored folder was answered with ${back.status} ${back.text}`);
          await sleep(AWAY_MS);
        }
        return {
          counts: {
            'renamed away and back': renames,
            'reloads refused (409)': refused,
            'reloads afterwards': reloaded,
          },
          faults: faults.counts,
        };
      },
    });
  },
};
