import { existsSync, statSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { HubServer } from '../helpers/hub-server.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { type Ended, endOf, runTrawl, spawnTrawl } from './run-trawl.ts';

export interface HubRuns {
  readonly hub: HubServer;
  /** The working folder of the commands. */
  readonly cwd: string;
  /** Points the commands at the test's hub and clears other hub settings. */
  readonly env: Readonly<Record<string, string>>;
  run(args: readonly string[]): Promise<Ended>;
  /**
   * Starts a command in a process of its own. The hub stalls in the middle of the file `path`. Resolves when the file `partial`
   * has the first bytes.
   */
  halfWay(args: readonly string[], path: string, partial: string): Promise<Halted>;
}

interface Halted {
  /** Sends the signal and waits until the process has ended. */
  end(signal: NodeJS.Signals): Promise<Ended>;
}

const STALL_AFTER_BYTES = 1_000_000;

/** A hub, a folder, and commands that download from the hub into the folder. */
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
      hub.behaviour[path] = { stallAfter: STALL_AFTER_BYTES, stalls: 1 };
      const child = spawnTrawl(args, options);
      t.after(() => child.kill('SIGKILL'));
      const ended = endOf(child);
      while (!existsSync(partial) || statSync(partial).size === 0) {
        if (child.exitCode !== null)
          throw new Error(`the command ended before ${partial} existed: ${(await ended).stderr}`);
        await sleep(10);
      }
      return {
        async end(signal) {
          child.kill(signal);
          const result = await ended;
          hub.behaviour[path] = {};
          return result;
        },
      };
    },
  };
}
