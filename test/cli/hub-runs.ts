import { existsSync, statSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { HubServer } from '../helpers/hub-server.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { type Ended, endOf, runTrawl, spawnTrawl } from './run-trawl.ts';

export interface HubRuns {
  readonly hub: HubServer;
  /** Where the commands run. */
  readonly cwd: string;
  /** The test's hub, and no settings of the person who runs the tests. */
  readonly env: Readonly<Record<string, string>>;
  run(args: readonly string[]): Promise<Ended>;
  /**
   * The command as a process of its own, at the moment when a part of the file `path` of the hub has arrived as `partial`
   * and no more comes.
   */
  halfWay(args: readonly string[], path: string, partial: string): Promise<Halted>;
}

export interface Halted {
  /** Sends the signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<Ended>;
}

const ARRIVING_BYTES = 1_000_000;

/** A hub, a folder, and command lines that download from the one into the other. */
export async function hubRuns(t: TestContext, ...repositories: Parameters<typeof HubServer.start>): Promise<HubRuns> {
  const hub = await HubServer.start(...repositories);
  t.after(() => hub.close());
  const cwd = await tempFolder(t);
  const env = {
    HF_ENDPOINT: hub.endpoint,
    HF_HOME: `${cwd}/no-token`,
    HF_TOKEN: '',
    HUGGING_FACE_HUB_TOKEN: '',
    HF_TOKEN_PATH: '',
    HF_HUB_OFFLINE: '',
    TRANSFORMERS_OFFLINE: '',
  };
  const options = { cwd, env };
  return {
    hub,
    cwd,
    env,
    run: (args) => runTrawl(args, options),
    async halfWay(args, path, partial) {
      hub.behaviour[path] = { stallAfter: ARRIVING_BYTES, stalls: 1 };
      const child = spawnTrawl(args, options);
      t.after(() => child.kill('SIGKILL'));
      const ended = endOf(child);
      while (!existsSync(partial) || statSync(partial).size === 0) {
        if (child.exitCode !== null) throw new Error(`it ended before ${partial} was there: ${(await ended).stderr}`);
        await sleep(10);
      }
      return {
        async end(signal) {
          child.kill(signal);
          const how = await ended;
          hub.behaviour[path] = {};
          return how;
        },
      };
    },
  };
}
