# A network of TCP flows in ns-2.35 as ns-2.1b8a (May 2001) had them: NewReno with that version's defaults, drop-tail queues, a link that
# fails, and routes that change at a given time. It makes no choices: `ns network.tcl CALLS` reads a file of calls of the procedures
# below, which benches/ns2_agreement.py writes.
#
# Prints `flow`, `sample` and `queue` lines; packets that arrive over watched links are in the trace file.

# Defaults that ns-2 changed after May 2001 are set back.
Agent/TCP set tcpTick_ 0.1
Agent/TCP set minrto_ 1
Agent/TCP set maxrto_ 100000
Agent/TCP set rtxcur_init_ 6.0
Agent/TCP set rfc2988_ false
Agent/TCP set singledup_ 0
Agent/TCP set windowInit_ 2
Agent/TCP set syn_ true
Agent/TCP set delay_growth_ true
Agent/TCP set precisionReduce_ false
Agent/TCP set updated_rttvar_ false
Agent/TCP/Newreno set newreno_changes1_ 0
Agent/TCP/Newreno set partial_window_deflation_ 0
# A packet of 1000 bytes is 1000 bytes on the wire.
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1000

set ns [new Simulator]
set flows 0

# What an acknowledgment and a SYN take.
proc acknowledgments {bytes} {
    Agent/TCPSink set packetSize_ $bytes
    Agent/TCP set tcpip_base_hdr_size_ $bytes
}

# The window of all flows, in packets; the first threshold is the same.
proc window {packets} { Agent/TCP set window_ $packets }

proc link {a b rate_bps delay_s limit} {
    global ns node
    foreach name [list $a $b] {
        if {![info exists node($name)]} { set node($name) [$ns node] }
    }
    $ns duplex-link $node($a) $node($b) $rate_bps ${delay_s}s DropTail
    $ns queue-limit $node($a) $node($b) $limit
    $ns queue-limit $node($b) $node($a) $limit
}

# From then on, `at` sends what is for `destination` to its neighbour `next`.
proc route {time_s at destination next} {
    global ns node
    $ns at $time_s "$node($at) add-route [$node($destination) id] \[\[$ns link $node($at) $node($next)\] head\]"
}

# In both directions; what waits or is on its way is lost.
proc fail {time_s a b} {
    global ns node
    $ns rtmodel-at $time_s down $node($a) $node($b)
}

# Keeps each packet's arrival over a link.
proc watch {a b file} {
    global ns node
    $ns trace-queue $node($a) $node($b) $file
}

proc flow {source sink start_s} {
    global ns node flows tcp
    set tcp($flows) [new Agent/TCP/Newreno]
    set receiver [new Agent/TCPSink]
    $tcp($flows) set fid_ $flows
    $ns attach-agent $node($source) $tcp($flows)
    $ns attach-agent $node($sink) $receiver
    $ns connect $tcp($flows) $receiver
    set application [new Application/FTP]
    $application attach-agent $tcp($flows)
    $ns at $start_s "$application start"
    incr flows
}

# Counts what arrives at the queue of a link, in one direction.
proc count {a b} {
    global ns node counter
    set counter [$ns monitor-queue $node($a) $node($b) ""]
}

# time, packets that left the queue, that it dropped; timeouts; packets in flight and acknowledged, of all flows together.
proc sample {every_s} {
    global ns tcp flows counter
    set timeouts 0
    set flight 0
    set acknowledged 0
    for {set i 0} {$i < $flows} {incr i} {
        incr timeouts [$tcp($i) set nrexmit_]
        incr flight [expr [$tcp($i) set t_seqno_] - [$tcp($i) set ack_] - 1]
        incr acknowledged [expr [$tcp($i) set ack_] + 1]
    }
    puts "sample [$ns now] [$counter set pdepartures_] [$counter set pdrops_] $timeouts $flight $acknowledged"
    $ns at [expr [$ns now] + $every_s] "sample $every_s"
}

proc end {time_s} {
    global ns
    $ns at $time_s finish
    $ns run
}

proc finish {} {
    global ns tcp flows
    for {set i 0} {$i < $flows} {incr i} {
        puts "flow $i [$tcp($i) set nrexmit_] [$tcp($i) set nrexmitpack_]"
    }
    $ns flush-trace
    exit 0
}

source [lindex $argv 0]
