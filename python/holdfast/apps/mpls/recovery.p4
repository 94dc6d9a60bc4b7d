// A node's memory of failures: ports, notices, and the path of each LSP that is in use. Included by mpls.p4, whose ingress puts these
// controls together. They know numbers of LSPs, ports and NHLFEs, and no packets.

// Whether there is a signal at a port.
control PortState(in port_t port, out bit<1> up) {
    @port_state register<bit<1>>(PORTS) port_up;

    apply {
        port_up.read(up, (bit<32>)port);
    }
}

// The neighbours' words about the other direction of links: a failure in one direction is seen at its end only.
control RemoteDefect(in port_t port, in bit<8> told, out bit<1> defect, out bool changed) {
    register<bit<1>>(PORTS) remote_defect;

    apply {
        bit<1> before;
        remote_defect.read(before, (bit<32>)port);
        defect = before;
        if (told == EVENT_REMOTE_DOWN) {
            defect = 1;
        } else if (told == EVENT_REMOTE_UP) {
            defect = 0;
        }
        changed = defect != before;
        if (changed) {
            remote_defect.write((bit<32>)port, defect);
        }
    }
}

// When the ingresses of LSPs were last told of a port. Events tell them, and packets that find the port still down.
control Reminders(in port_t port, in bool always, in time_us_t now, out bool due) {
    register<time_us_t>(PORTS) told_at;

    apply {
        time_us_t before;
        told_at.read(before, (bit<32>)port);
        due = always || now - before >= REMINDER_US;
        if (due) {
            told_at.write((bit<32>)port, now);
        }
    }
}

// A merge point that forwards one of its inputs at a time, as optical equipment does.
control MergePoint(in lsp_t lsp, in bit<2> merge_input, in bit<1> primary_up, in bit<8> notice_kind,
                   out bool accepted) {
    // 1: packets from the backup are forwarded.
    register<bit<1>>(LSPS) backup_selected;
    counter(LSPS, CounterType.packets_and_bytes) discarded;

    apply {
        accepted = true;
        if (merge_input == INPUT_PRIMARY) {
            // Every packet of the primary is forwarded, and ends the backup's turn.
            if (notice_kind == NOTICE_FAILED) {
                backup_selected.write((bit<32>)lsp, 1);
            } else if (notice_kind == 0) {
                backup_selected.write((bit<32>)lsp, 0);
            }
        } else {
            bit<1> selected;
            backup_selected.read(selected, (bit<32>)lsp);
            if (primary_up == 0) {
                backup_selected.write((bit<32>)lsp, 1);
            } else if (selected == 0) {
                discarded.count((bit<32>)lsp);
                accepted = false;
            }
        }
    }
}

// Decides between an LSP's NHLFEs.
control Protection(in lsp_t lsp, in nhlfe_t backup, inout nhlfe_t nhlfe, in bit<1> usable, in bit<32> failed_hops,
                   in time_us_t now) {
    // 1: this node sends the LSP's packets by the second NHLFE.
    register<bit<1>>(LSPS) on_backup;
    // When the first NHLFE was found good again while the second was in use, plus 1; 0: it was not.
    register<time_us_t>(LSPS) repaired_at;
    // The time for which the first must be good before it is used again; all ones: for ever (not revertive).
    register<time_us_t>(LSPS) wait_to_restore;
    counter(LSPS, CounterType.packets_and_bytes) backup_traffic;
    counter(LSPS, CounterType.packets) switchovers;

    apply {
        bit<1> switched;
        on_backup.read(switched, (bit<32>)lsp);
        if (usable == 0 || failed_hops != 0) {
            if (switched == 0) {
                on_backup.write((bit<32>)lsp, 1);
                switchovers.count((bit<32>)lsp);
                switched = 1;
            }
            repaired_at.write((bit<32>)lsp, 0);
        } else if (switched == 1) {
            time_us_t since;
            time_us_t patience;
            repaired_at.read(since, (bit<32>)lsp);
            wait_to_restore.read(patience, (bit<32>)lsp);
            if (since == 0) {
                since = now + 1;
                repaired_at.write((bit<32>)lsp, since);
            }
            if (patience != ~(time_us_t)0 && now + 1 - since >= patience) {
                on_backup.write((bit<32>)lsp, 0);
                switched = 0;
            }
        }
        if (switched == 1) {
            backup_traffic.count((bit<32>)lsp);
            nhlfe = backup;
        }
    }
}

// The ingress of an LSP learns here that something further on failed or was repaired: from notices, and, where the LSP is so
// configured, from packets that come back.
control Notices(in lsp_t lsp, in bit<8> kind, in bit<8> notice_hop, out bit<32> hops) {
    // Bit n: the n-th link of the LSP's path has failed. The highest bit: packets came back.
    register<bit<32>>(LSPS) failed_hops;
    counter(LSPS, CounterType.packets) notices_received;

    apply {
        failed_hops.read(hops, (bit<32>)lsp);
        bit<32> hop = (bit<32>)1 << (notice_hop & 31);
        if (kind == NOTICE_FAILED) {
            failed_hops.write((bit<32>)lsp, hops | hop);
            notices_received.count((bit<32>)lsp);
        } else if (kind == NOTICE_REPAIRED) {
            failed_hops.write((bit<32>)lsp, hops & ~hop & 0x7FFFFFFF);
            notices_received.count((bit<32>)lsp);
        } else if (kind == LOOPED_PACKET) {
            failed_hops.write((bit<32>)lsp, hops | 0x80000000);
        }
    }
}
