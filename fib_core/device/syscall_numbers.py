"""Numbers of the system calls that confinement names, per machine. Data only.

The kernel never renumbers a call. Where an architecture lacks one its column holds None.
"""

X86_64_AND_AARCH64: dict[str, tuple[int | None, int | None]] = {
    # other processes' memory, descriptors, scheduling
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "migrate_pages": (256, 238), "move_pages": (279, 239), "prlimit64": (302, 261), "setpriority": (141, 140),
    "ioprio_set": (251, 30), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    # signals
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424), "fcntl": (72, 25), "ioctl": (16, 29),
    # sockets and rings
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # memory and messages that outlive a process
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # who may do what with a file
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "removexattrat": (466, 466),
    # namespaces, mounts, the machine
    "clone": (56, 220), "clone3": (435, 435), "setns": (308, 268), "unshare": (272, 97), "chroot": (161, 51),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "open_tree_attr": (467, 467), "swapon": (167, 224),
    "swapoff": (168, 225), "quotactl": (179, 60), "quotactl_fd": (443, 443), "acct": (163, 89), "reboot": (169, 142),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58), "syslog": (103, 116),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None),
    "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    # watching and clocks
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "clock_settime": (227, 112),
    "settimeofday": (164, 170), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    # confinement itself
    "seccomp": (317, 277), "prctl": (157, 167), "mseal": (462, 462), "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445), "landlock_restrict_self": (446, 446),
}  # fmt: skip


def number_of(name: str, machine: str) -> int | None:
    """The number of a call on ``machine`` (``x86_64`` or ``aarch64``), None where it is unknown or does not exist."""
    numbers = X86_64_AND_AARCH64[name]
    return {"x86_64": numbers[0], "aarch64": numbers[1]}.get(machine)
